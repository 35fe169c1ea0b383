// ResourceCore: the servers and the queue of a Resource. Threading: the thread of the World.
#pragma once

#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "sluice/asio/detail/wait.hpp"
#include "sluice/asio/timed_loop.hpp"
#include "sluice/sim/timeline.hpp"

namespace sluice::sim {

class World;

/// The order in which the waiters of a Resource get servers.
enum class Discipline : std::uint8_t {
  fifo,      ///< first come, first served
  priority,  ///< a higher priority first; first come, first served within one
};

/// Options of one wait for a server.
struct AcquireOptions {
  int priority = 0;  ///< for Discipline::priority
  /// The first instant at which the caller no longer waits. It wins over a server that is released
  /// at the same instant, in whichever order the two happen. Not after now(): the caller takes a
  /// free server or none.
  Time deadline = Time::max();
};
// g++ 12 destroys an aggregate that is made inside a co_await twice.
static_assert(std::is_trivially_destructible_v<AcquireOptions>);

/// The state of a Resource, and its sums since the last reset.
struct ResourceStats {
  std::size_t servers = 0;
  std::size_t busy = 0;     ///< servers that are held: more than `servers` after set_servers()
  std::size_t waiting = 0;  ///< callers in the queue

  Span elapsed{0};
  std::uint64_t served = 0;        ///< callers that got a server
  std::uint64_t abandoned = 0;     ///< callers that got none: deadline, cancellation, end
  std::uint64_t server_time = 0;   ///< the sum of `servers` over each microsecond
  std::uint64_t busy_time = 0;     ///< the sum of `busy`: server-microseconds
  std::uint64_t waiting_time = 0;  ///< the sum of `waiting`: waiter-microseconds

  /// Time-weighted means; 0 if no time has elapsed.
  [[nodiscard]] double mean_busy() const noexcept { return mean(busy_time); }
  [[nodiscard]] double mean_waiting() const noexcept { return mean(waiting_time); }
  /// The share of the servers' time in which they were held; 0 if there were none.
  [[nodiscard]] double utilization() const noexcept {
    if (server_time == 0) return 0;
    return static_cast<double>(busy_time) / static_cast<double>(server_time);
  }

 private:
  [[nodiscard]] double mean(std::uint64_t sum) const noexcept {
    if (elapsed == Span{0}) return 0;
    return static_cast<double>(sum) / static_cast<double>(elapsed.count());
  }
};

namespace detail {

class ResourceCore;

using PriorityHook =
    boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>,
                                    boost::intrusive::link_mode<boost::intrusive::normal_link>>;

/// A caller of acquire(). It is in the queue, or an event that completes it is pending, or both:
/// the event of its deadline.
class ResourceWait : public TimedLoop::Wait,
                     public sluice::asio::detail::Link,
                     public PriorityHook {
 protected:
  ResourceWait(Function function, ResourceCore& core, const AcquireOptions& options) noexcept
      : Wait(function), core_(core), priority_(options.priority), deadline_(options.deadline) {}
  ~ResourceWait() = default;

  /// Takes it out of the queue without a server: it completes at this instant.
  void cancel() noexcept;
  /// True: it holds a server, which becomes the caller's. Called once, by its event.
  [[nodiscard]] bool take_grant() noexcept;
  [[nodiscard]] ResourceCore& core() const noexcept { return core_; }

 private:
  friend class ResourceCore;
  struct Before;
  enum class State : std::uint8_t { waiting, granted, ended };

  ResourceCore& core_;  // exists while this waits or holds a server
  int priority_;
  State state_ = State::waiting;
  Time deadline_;
};

/// Shared by a Resource and its held servers, of which the last one deletes it.
class ResourceCore : public sluice::asio::detail::Link {
 public:
  ResourceCore(World& world, std::size_t servers, Discipline discipline);
  ResourceCore(const ResourceCore&) = delete;
  ResourceCore& operator=(const ResourceCore&) = delete;

  /// Throws std::logic_error if it has ended.
  [[nodiscard]] World& world() const;

  /// Grants a server or queues the wait; if it throws, neither.
  void begin(ResourceWait& wait);
  [[nodiscard]] bool try_begin();
  void release() noexcept;
  void set_servers(std::size_t servers);
  [[nodiscard]] ResourceStats stats() noexcept;
  void reset_stats() noexcept;

  /// The Resource is destroyed: its waiters end without a server.
  void leave_resource() noexcept;
  /// The World is destroyed: the events of the waiters are queued, to be destroyed.
  void leave_world() noexcept;

 private:
  friend class ResourceWait;
  struct ByPriority;

  ~ResourceCore();
  static std::size_t checked(std::size_t servers);
  void tally() noexcept;
  void grant(ResourceWait& wait);
  void serve() noexcept;
  void abandon(ResourceWait& wait) noexcept;
  void cancel(ResourceWait& wait) noexcept;
  void enqueue(ResourceWait& wait) noexcept;
  void dequeue(ResourceWait& wait) noexcept;
  [[nodiscard]] ResourceWait& first() noexcept;

  World* world_;       // null: it has ended
  bool owned_ = true;  // by a Resource
  Time since_;         // the begin of the sums
  Time tallied_;       // their end
  ResourceStats stats_;
  // The queue: a line, or a tree for Discipline::priority.
  sluice::asio::detail::Link line_;
  std::unique_ptr<ByPriority> by_priority_;
};

}  // namespace detail
}  // namespace sluice::sim
