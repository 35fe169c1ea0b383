// One process behind a wire whose calls wait for several limits. Threading: everything on the
// thread that moves the clock.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test::claims {

using namespace std::chrono_literals;

/// Calls `sent` before each request, and counts. Without order over processes.
class Tap final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    ++operations;
    if (sent) sent();
    StoreWrapper::execute(plan, std::move(done));
  }

  std::function<void()> sent;
  std::uint64_t operations = 0;
};

/// How a call ended.
struct Ended {
  Time came;
  int times = 0;
  bool is_granted = false;
  std::error_code error{};
  Time at{};
  int overtaken = 0;  // by later calls that were granted before
};

/// One process behind a wire, whose calls are numbered.
class Bench {
 public:
  using Waiting = std::shared_ptr<Probe<Several>>;

  explicit Bench(Span slowest = 0s) { wire.slowest = slowest; }
  ~Bench() {
    while (!held.empty()) release(held.begin()->first);
    for (const auto& stream : streams_) clock.cancel_timer(stream->timer);
    for (const auto& [name, waiting] : waiting_) waiting->cancel();
    tap.sent = {};
    clock.advance(1min);
    wire.slowest = 0s;
  }
  Bench(const Bench&) = delete;

  void wait(int name, const std::vector<Claim>& claims,
            const Deadline& deadline = Deadline::never(), const detail::Caller& caller = {}) {
    ends[name].came = clock.now();
    waiting_[name] = wait_for(
        Several{}, detail::limits_of(claims), deadline,
        [this, name](std::error_code error, Grants grants) { end(name, error, std::move(grants)); },
        caller);
  }
  void cancel(int name) {
    if (waiting_[name]) waiting_[name]->cancel();
  }
  void release(int name) {
    auto given = held.extract(name);
    if (given.empty()) return;
    for (std::size_t i = 0; i < given.mapped().size(); ++i) {
      if (is_place(given.mapped(), i)) given.mapped().get<Lease>(i).release_later();
    }
  }
  /// Calls at regular times, which hold places for `hold`.
  void stream(Span first, Span gap, const std::vector<Claim>& claims,
              const detail::Caller& caller = {}, Span hold = Span::max()) {
    streams_.push_back(std::make_unique<Stream>(*this, gap, claims, caller, hold));
    Stream& stream = *streams_.back();
    if (clock.set_timer(stream.timer, start + first) == TimerState::due) Stream::ring(&stream);
  }
  void run_until(Span end) { clock.advance(start + end - clock.now()); }
  [[nodiscard]] Span granted_at(int name) { return granted(name) ? ends[name].at - start : -1s; }
  [[nodiscard]] bool granted(int name) { return ends[name].is_granted; }
  [[nodiscard]] int most_overtaken() const {
    int most = 0;
    for (const auto& [name, end] : ends) most = std::max(most, end.overtaken);
    return most;
  }
  [[nodiscard]] int grants() const {
    return static_cast<int>(
        std::ranges::count_if(ends, [](const auto& end) { return end.second.is_granted; }));
  }

  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  Tap tap{*store};
  Wire wire{tap, clock, 1};
  Time start = clock.now();
  std::map<int, Ended> ends;
  std::map<int, Grants> held;

 private:
  struct Stream {
    Stream(Bench& owner, Span between, std::vector<Claim> its, detail::Caller who, Span until)
        : bench(owner), gap(between), claims(std::move(its)), caller(std::move(who)), hold(until) {}
    static void ring(void* self) noexcept {
      auto& stream = *static_cast<Stream*>(self);
      Bench& bench = stream.bench;
      const int name = bench.next_name_++;
      bench.holds_[name] = stream.hold;
      bench.wait(name, stream.claims, Deadline::never(), stream.caller);
      bench.clock.set_timer(stream.timer, bench.clock.now() + stream.gap);
    }
    Bench& bench;
    Span gap;
    std::vector<Claim> claims;
    detail::Caller caller;
    Span hold;
    TimerCallback timer{&Stream::ring, this};
  };
  struct Holder {
    Holder(Bench& owner, int its) : bench(owner), name(its) {}
    static void ring(void* self) noexcept {
      auto& holder = *static_cast<Holder*>(self);
      holder.bench.release(holder.name);
    }
    Bench& bench;
    int name;
    TimerCallback timer{&Holder::ring, this};
  };

  static bool is_place(Grants& grants, std::size_t claim) {
    try {
      return bool(grants.get<Lease>(claim));
    } catch (const std::invalid_argument&) {
      return false;
    }
  }
  void end(int name, std::error_code error, Grants grants) {
    Ended& own = ends[name];
    ++own.times;
    own.error = error;
    own.at = clock.now();
    if (error || !grants) return;
    own.is_granted = true;
    for (auto& [other, its] : ends) {
      if (its.times == 0 && its.came < own.came) ++its.overtaken;
    }
    held[name] = std::move(grants);
    if (holds_.contains(name) && holds_[name] != Span::max()) {
      holders_.push_back(std::make_unique<Holder>(*this, name));
      clock.set_timer(holders_.back()->timer, clock.now() + holds_[name]);
    }
  }

  std::map<int, Waiting> waiting_;
  std::map<int, Span> holds_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Holder>> holders_;
  int next_name_ = 1'000;
};

constexpr int call = 1;  // the one that is looked at

}  // namespace sluice::test::claims
