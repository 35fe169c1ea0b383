// Who is next: what customers and batch work see of a busy limit, in virtual time.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

using detail::Caller;

/// Callers that come at regular times to one limit.
template <class L>
class Traffic {
 public:
  using Make = std::function<std::unique_ptr<L>(Store&)>;

  Traffic(std::size_t processes, const Make& make) {
    for (std::size_t i = 0; i < processes; ++i) {
      wires_.push_back(std::make_unique<Wire>(*store_, time_, i + 1));
      limits_.push_back(make(*wires_.back()));
      limits_.back()->set_wait_queue({.client = static_cast<std::int64_t>(i + 1)});
      wires_.back()->slowest = processes == 1 ? Span{0} : Span{2ms};
    }
  }
  ~Traffic() {
    for (const auto& stream : streams_) time_.cancel_timer(stream->timer);
    for (const auto& limit : limits_) limit->cancel_waits();
    time_.advance(1s);  // requests under way
  }
  Traffic(const Traffic&) = delete;

  /// Returns the number of the stream.
  std::size_t stream(double per_second, const Caller& caller) {
    streams_.push_back(std::make_unique<Stream>(
        *this, caller, Span{static_cast<Word>(1e6 / per_second)}, streams_.size()));
    time_.set_timer(streams_.back()->timer, time_.now() + streams_.back()->gap);
    return streams_.size() - 1;
  }
  /// So many at once.
  std::size_t burst(int count, const Caller& caller) {
    streams_.push_back(std::make_unique<Stream>(*this, caller, Span{0}, streams_.size()));
    for (int i = 0; i < count; ++i) streams_.back()->begin();
    return streams_.size() - 1;
  }
  void run(Span length) { time_.advance(length); }

  [[nodiscard]] std::size_t grants(std::size_t stream) const {
    return streams_[stream]->waits.size();
  }
  /// Of those that were granted.
  [[nodiscard]] Span median_wait(std::size_t stream) const {
    std::vector<Span> waits = streams_[stream]->waits;
    std::ranges::nth_element(waits, waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2));
    return waits[waits.size() / 2];
  }

 private:
  struct Stream {
    Stream(Traffic& owner, Caller who, Span between, std::size_t number)
        : traffic(owner), caller(std::move(who)), gap(between), next_process(number) {}
    static void ring(void* self) noexcept {
      auto& stream = *static_cast<Stream*>(self);
      stream.begin();
      stream.traffic.time_.set_timer(stream.timer, stream.traffic.time_.now() + stream.gap);
    }
    void begin() {
      L& limit = *traffic.limits_[next_process++ % traffic.limits_.size()];
      const Time came = traffic.time_.now();
      wait_for(
          limit, request_of(limit, "api", 1), Deadline::never(),
          [this, came](std::error_code error, const auto& grant) {
            if (!error && grant) waits.push_back(traffic.time_.now() - came);
          },
          caller);
    }

    Traffic& traffic;
    Caller caller;
    Span gap;
    std::size_t next_process;
    TimerCallback timer{&Stream::ring, this};
    std::vector<Span> waits{};
  };

  VirtualClock time_;
  std::unique_ptr<Store> store_ = make_virtual_store(time_);
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<std::unique_ptr<L>> limits_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

/// `judge` is called with the traffic of a bucket and of a window of 10 a second.
template <class Judge>
void for_both(std::size_t processes, Judge judge) {
  Traffic<TokenBucket> of_bucket(processes, [](Store& store) {
    return std::make_unique<TokenBucket>(store, "b", Quota::per_second(10).burst(2));
  });
  judge(of_bucket);
  Traffic<SlidingWindow> of_window(processes, [](Store& store) {
    return std::make_unique<SlidingWindow>(store, "w", std::vector<WindowLimit>{{10, 1s}});
  });
  judge(of_window);
}

}  // namespace

TEST_CASE("interactive calls are fast beside batch work, which has the rest", "[waiting][order]") {
  for_both(GENERATE(1U, 4U), [](auto& traffic) {
    const auto interactive = traffic.stream(5, {.priority = 1});
    const auto batch = traffic.stream(9, {});
    traffic.run(10min);
    CHECK(traffic.median_wait(interactive) < 1s);
    CHECK(traffic.grants(interactive) >= 2'990);
    CHECK(traffic.grants(batch) >= 2'950);
  });
}

TEST_CASE("a customer does not wait for another's backlog", "[waiting][order]") {
  for_both(1, [](auto& traffic) {
    const auto busy = traffic.burst(1'000, {.flow = "busy"});
    traffic.run(5s);
    const auto small = traffic.burst(5, {.flow = "small"});
    traffic.run(1'200ms);
    CHECK(traffic.grants(small) == 5);
    CHECK(traffic.grants(busy) >= 50);
  });
}

TEST_CASE("batch work has its share of a limit that interactive calls exceed", "[waiting][order]") {
  for_both(GENERATE(1U, 4U), [](auto& traffic) {
    const auto interactive = traffic.stream(12, {.priority = 1});
    const auto batch = traffic.stream(9, {});
    traffic.run(10min);
    CHECK(traffic.grants(batch) >= 590);
    CHECK(traffic.grants(batch) <= 620);
    CHECK(traffic.grants(interactive) >= 5'380);
  });
}

}  // namespace sluice::test
