// A caller that finds the connection idle writes to it itself; here the socket does what a test
// wants with that write, or ends in its middle, at every byte that matters: what it took a byte of
// is unknown, and all else is decided on the next connection. Threading: as calls_test.cpp.
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>

#include "tests/redis/fake/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

/// What becomes of the sends of the thread that made it, while it lives.
class Sending {
 public:
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  /// Each send takes `takes` bytes at most, after `before` has been called with its socket.
  explicit Sending(std::size_t takes = all, std::function<void(int fd)> before = {})
      : takes_(takes), before_(std::move(before)) {
    here_ = this;
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  ~Sending() { here_ = nullptr; }

  [[nodiscard]] bool happened() const noexcept { return sends_ > 0; }
  /// The socket and the size of the last send.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// How much of a send is taken.
  static std::size_t note(int fd, std::size_t size) {
    if (here_ == nullptr) return size;
    ++here_->sends_;
    here_->fd_ = fd;
    here_->size_ = size;
    if (here_->before_) here_->before_(fd);
    return std::min(size, here_->takes_);
  }

 private:
  static inline thread_local Sending* here_ = nullptr;

  std::size_t takes_;
  std::function<void(int)> before_;
  std::size_t sends_ = 0;
  int fd_ = -1;
  std::size_t size_ = 0;
};

/// While it lives, a socket takes so many bytes more, whoever sends them, and then it is shut down.
class Cut {
 public:
  Cut(int fd, std::size_t takes) {
    left_ = takes;
    fd_ = fd;
  }
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  ~Cut() { fd_ = -1; }

  static ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
    const bool is_cut = fd == fd_;
    if (is_cut) size = std::min<std::size_t>(size, left_);
    const ssize_t taken = size > 0 ? ::sendto(fd, bytes, size, flags, nullptr, 0) : 0;
    if (size == 0) errno = is_cut ? EPIPE : EAGAIN;
    if (is_cut && taken > 0) left_ -= static_cast<std::size_t>(taken);
    if (is_cut && left_ == 0) {
      fd_ = -1;
      const int error = std::exchange(errno, 0);
      ::shutdown(fd, SHUT_RDWR);
      errno = error;
    }
    return size > 0 ? taken : -1;
  }

 private:
  // Static, because another thread may look here when it has just ended.
  static inline std::atomic<int> fd_{-1};
  static inline std::atomic<std::size_t> left_{0};
};

}  // namespace
}  // namespace sluice::test

/// The test program's own, which looks there first.
ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  return sluice::test::Cut::send(fd, bytes, sluice::test::Sending::note(fd, size), flags);
}

using namespace sluice;
using namespace sluice::test;

namespace {

void reconnect_soon(RedisOptions& options) { options.reconnect_max = 10ms; }

/// Answers when the test wants it to.
struct Hesitant {
  std::atomic<bool> speaks{true};
  Rig rig{[this](Peer& peer, int) {
            for (Word at = 1; const auto call = peer.read_call(); ++at) {
              if (!eventually([this] { return speaks.load(); })) return;
              if (!peer.send(allowing(*call, at))) return;
            }
          },
          reconnect_soon};
};

/// A request that this thread has written: its socket and its size.
struct Request {
  int fd = -1;
  std::size_t bytes = 0;
};

/// Makes calls that end well until one of them was written by this thread.
Request settle(const Rig& rig) {
  Request request;
  const bool has_settled = eventually([&] {
    const Sending sending;
    REQUIRE_FALSE(rig.error(1h));
    request = {sending.fd(), sending.size()};
    return sending.happened();
  });
  REQUIRE(has_settled);
  return request;
}

/// Asks all at once.
void ask_at_once(const Rig& rig, Crowd& crowd) {
  const Step step = (*rig.bucket).acquire_step("a");
  const std::vector<Plan> plans(crowd.size(), Plan(step).within(1h));
  std::vector<Completion> done;
  for (std::size_t i = 0; i < crowd.size(); ++i) done.push_back(crowd[i].completion());
  rig.store->execute_batch(plans, done);
}

constexpr std::size_t calls = 3;
constexpr Word next_at = 500;  // what the second connection answers starts there

/// A server whose first connection falls silent when a call was made there.
struct Scene {
  std::atomic<bool> is_mute{false};
  Rig rig{at_first([this](Peer& peer) {
    for (Word at = 1; const auto call = peer.read_call(); ++at) {
      if (is_mute) return peer.wait_for_close();
      if (!peer.send(allowing(*call, at))) return;
    }
  })};
  Request request = settle(rig);

  Scene() { is_mute = true; }

  /// Asks `crowd` at once. The socket takes so many bytes of it and ends. True if this thread
  /// wrote.
  bool ask(Crowd& crowd, std::size_t takes) const {
    const Cut cut(request.fd, takes);
    const Sending sending;
    ask_at_once(rig, crowd);
    REQUIRE(crowd.wait());
    return sending.happened();
  }
};

/// Each request of the crowd is `bytes` long and was sent in order, and the socket took `taken`.
void check_ends(Crowd& crowd, std::size_t bytes, std::size_t taken) {
  Time last = to_time(next_at - 1);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    CAPTURE(i);
    CHECK(crowd[i].answers == 1);
    if (i * bytes < taken) {
      CHECK(crowd[i].error == Errc::unknown);
    } else {
      CHECK_FALSE(crowd[i].error);
      CHECK(crowd[i].decision.at > last);
      last = crowd[i].decision.at;
    }
  }
}

std::vector<std::size_t> boundaries(std::size_t bytes) {
  std::vector<std::size_t> result{0, 1};
  for (std::size_t i = 1; i <= calls; ++i) {
    for (const std::size_t at : {i * bytes - 1, i * bytes, i * bytes + 1}) {
      if (at <= calls * bytes) result.push_back(at);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("what a socket does not take of a caller's write follows, in order", "[fake]") {
  const Rig rig([](Peer& peer, int) { serve_well(peer); }, reconnect_soon);
  const std::size_t takes = GENERATE(0U, 1U, 1000U);
  const std::size_t many = GENERATE(1U, 64U);
  CAPTURE(takes, many);
  settle(rig);
  const bool happened = eventually([&] {
    Crowd crowd(many);
    const Sending sending(takes);
    ask_at_once(rig, crowd);
    REQUIRE(crowd.wait());
    const Word first_at = crowd[0].decision.at.time_since_epoch().count();
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      REQUIRE_FALSE(crowd[i].error);
      REQUIRE(crowd[i].decision.at == to_time(first_at + static_cast<Word>(i)));
    }
    return sending.happened();
  });
  CHECK(happened);
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("a call that its caller wrote ends when its own time is over", "[fake]") {
  Hesitant hesitant;
  const Rig& rig = hesitant.rig;
  const bool happened = eventually([&] {
    settle(rig);  // the store's thread sleeps for an hour, or for ever
    CHECK(rig.error(-1us) == Errc::timed_out);
    hesitant.speaks = false;
    const Sending sending;
    const Time since = rig.store->clock().now();
    Asked asked;
    rig.ask(asked, 50ms);
    asked.wait();
    hesitant.speaks = true;
    if (!sending.happened()) return false;
    CHECK(asked.error == Errc::unknown);
    CHECK(rig.store->clock().now() - since >= Span{50ms});
    return true;
  });
  CHECK(happened);
}

TEST_CASE("a stop request in the middle of a caller's write ends the call as unknown", "[fake]") {
  Hesitant hesitant;
  const Rig& rig = hesitant.rig;
  const bool happened = eventually([&] {
    settle(rig);
    hesitant.speaks = false;
    std::stop_source stop;
    const Sending sending(1, [&](int) { stop.request_stop(); });
    Asked asked;
    rig.ask(asked, 1h, stop.get_token());
    if (!sending.happened()) hesitant.speaks = true;
    asked.wait();
    CHECK(asked.error == (sending.happened() ? make_error_code(Errc::unknown) : std::error_code{}));
    hesitant.speaks = true;
    return sending.happened();
  });
  CHECK(happened);
  CHECK_FALSE(rig.error(1h));
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("threads that write themselves now and then have their calls decided in order",
          "[fake]") {
  const std::string name =
      "threads that write themselves now and then have their calls decided in order";
  const Rig rig([](Peer& peer, int) { serve_well(peer); });
  std::atomic<std::size_t> wrong{0}, written{0}, handed_over{0};
  const auto work = [&](Random& random) {
    std::size_t rounds = scaled(2000, 200);
    for (Time last{}; rounds > 0; --rounds) {
      Crowd crowd(random.below(4) + 1);
      for (std::size_t i = 0; i < crowd.size(); ++i) {
        const Sending sending;
        rig.ask(crowd[i]);
        ++(sending.happened() ? written : handed_over);
      }
      wrong += crowd.wait() ? 0U : 1U;
      for (std::size_t i = 0; i < crowd.size(); ++i) {
        wrong += crowd[i].error || crowd[i].decision.at <= last ? 1U : 0U;
        last = crowd[i].decision.at;
      }
    }
  };
  Random random(name), other(name);
  CAPTURE(random.repeat());
  {
    std::jthread thread([&] { work(other); });
    work(random);
  }
  CHECK(wrong == 0);
  CHECK(handed_over > 0);
  if (written == 0) settle(rig);
  CHECK(rig.stats().connections == 1);
}

TEST_CASE("of a write that breaks off, what the socket took no byte of is decided later",
          "[fake]") {
  const bool is_behind_another = GENERATE(false, true);
  for (const std::size_t takes : boundaries(Scene().request.bytes)) {
    CAPTURE(takes);
    const bool happened = eventually([&] {
      const Scene scene;
      Asked first;
      if (is_behind_another) {
        scene.rig.ask(first);  // is never answered
        REQUIRE(
            eventually([&] { return scene.rig.error(1ms) == Failure::unknown; }));  // both are sent
      }
      Crowd crowd(calls);
      const bool wrote = scene.ask(crowd, takes);
      check_ends(crowd, scene.request.bytes, takes);
      CHECK(eventually([&] { return scene.rig.stats().connections == 2; }));
      if (is_behind_another) {
        CHECK_FALSE(wrote);
        CHECK(first.wait().error == Errc::unknown);
        return true;
      }
      CHECK(scene.rig.stats().unknown == (takes + scene.request.bytes - 1) / scene.request.bytes);
      return wrote;
    });
    CHECK(happened);
  }
}
