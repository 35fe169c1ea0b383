// Resource: servers for which the coroutines of a World wait. Threading: the thread of the World.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "sluice/asio/detail/loop_wait.hpp"
#include "sluice/sim/resource_core.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim {

namespace detail {
template <class Handler>
class Acquisition;
}

/// A number of equal servers with one queue: a database's connections, a pool of threads, the
/// processor of a store.
///
///     boost::asio::awaitable<void> call(World& world, Resource& database) {
///       const Resource::Server server =
///           co_await database.acquire({.deadline = world.now() + 1s});
///       if (!server) co_return;                             // timed out
///       co_await sluice::asio::sleep_for(world.clock(), 5ms);
///     }                                                     // the next caller gets the server
///
/// A server that is released goes to the next waiter at that instant, before any caller that comes
/// later. A caller that waits takes no memory beyond that of its operation.
///
/// The destructor ends all waits without a server. The World's end destroys them, as all waits; the
/// Resource and its held servers may be destroyed before or after it.
class Resource {
 public:
  static constexpr std::size_t max_servers = std::size_t{1} << 31;

  class Server;

  /// Throws std::invalid_argument if there are more than max_servers servers. REQUIRES: the World
  /// exists at each call of acquire(), try_acquire() and set_servers(), else they throw
  /// std::logic_error.
  Resource(World& world, std::size_t servers, Discipline discipline = Discipline::fifo)
      : core_(new detail::ResourceCore(world, servers, discipline)) {}
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  ~Resource() { core_->leave_resource(); }

  /// Waits for a server. The Server is empty if the deadline came first, the wait was cancelled, or
  /// the Resource was destroyed.
  ///
  /// Completion signature: `void(Resource::Server)`. Without a token, the operation is deferred: it
  /// starts when it is awaited. The handler never runs inside the call, also if a server is free.
  ///
  /// Per-operation cancellation: all types. A wait that has been granted a server keeps it.
  ///
  /// Lifetimes: the Resource must exist when the operation starts. The handler runs on its
  /// associated executor, by default the World's, with its allocator.
  template <class CompletionToken = boost::asio::deferred_t>
  [[nodiscard]] auto acquire(const AcquireOptions& options, CompletionToken&& token = {});
  [[nodiscard]] auto acquire();

  /// A server if one is free, else an empty one.
  [[nodiscard]] Server try_acquire();

  /// Changes the number of servers, as in a brown-out: more serve the queue at once; of fewer,
  /// those that are held finish first. 0 stops the service. Throws as the constructor does.
  void set_servers(std::size_t servers) { core_->set_servers(servers); }

  /// The state now, and the sums since the beginning or the last reset_stats().
  [[nodiscard]] ResourceStats stats() const noexcept { return core_->stats(); }
  /// Forgets the sums and counts, for the end of a warm-up.
  void reset_stats() noexcept { core_->reset_stats(); }

 private:
  detail::ResourceCore* core_;
};

/// A server that its owner holds, or none. The destructor releases it.
class [[nodiscard]] Resource::Server {
 public:
  Server() = default;
  Server(Server&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Server& operator=(Server&& other) noexcept {
    Server taken(std::move(other));
    std::swap(core_, taken.core_);
    return *this;
  }
  ~Server() { release(); }

  /// True if a server is held.
  [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

  /// Releases the server now, if one is held.
  void release() noexcept {
    if (core_ != nullptr) std::exchange(core_, nullptr)->release();
  }

 private:
  friend class Resource;
  template <class Handler>
  friend class detail::Acquisition;
  explicit Server(detail::ResourceCore* core) noexcept : core_(core) {}

  detail::ResourceCore* core_ = nullptr;
};

namespace detail {

/// acquire() as an Asio operation.
template <class Handler>
class Acquisition final : public ResourceWait {
  using Executor = boost::asio::associated_executor_t<Handler, World::Executor>;
  using Memory = sluice::asio::detail::OperationMemory<Acquisition, Handler>;
  friend Memory;

 public:
  static void start(ResourceCore& core, const AcquireOptions& options, Handler& handler) {
    Acquisition& self = *Memory::make(handler, core.world(), core, options);
    try {
      auto slot = boost::asio::get_associated_cancellation_slot(self.handler_);
      if (slot.is_connected()) slot.template emplace<OnCancel>(self);
      core.begin(self);
    } catch (...) {
      (void)self.take();
      throw;
    }
  }

 private:
  struct OnCancel {
    explicit OnCancel(Acquisition& wait) noexcept : self(wait) {}
    void operator()(boost::asio::cancellation_type type) {
      if (type != boost::asio::cancellation_type::none) self.cancel();
    }
    Acquisition& self;
  };

  Acquisition(Handler&& handler, World& world, ResourceCore& core,
              const AcquireOptions& options) noexcept
      : ResourceWait(&Acquisition::finish_wait, core, options),
        handler_(std::move(handler)),
        world_(world) {}
  ~Acquisition() = default;

  /// Frees the operation, so that the handler may start the next one in its memory.
  Handler take() {
    auto memory = Memory::allocator(handler_);
    Handler handler = std::move(handler_);
    Memory::destroy(*this, memory);
    return handler;
  }

  static void finish_wait(TimedLoop::Wait& wait, bool complete) {
    auto& self = static_cast<Acquisition&>(wait);
    Resource::Server server(self.take_grant() ? &self.core() : nullptr);
    if (complete) return self.complete(std::move(server));
    (void)self.take();  // its cancellation slot may be gone already
  }

  void complete(Resource::Server server) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
    const TimedLoop& loop = *world_.clock().loop();
    const Executor executor = boost::asio::get_associated_executor(handler_, world_.get_executor());
    sluice::asio::detail::call_from(loop, executor, take(), std::move(server));
  }

  Handler handler_;
  World& world_;
};

}  // namespace detail

template <class CompletionToken>
auto Resource::acquire(const AcquireOptions& options, CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(Server)>(
      [this, options](auto handler) {
        detail::Acquisition<decltype(handler)>::start(*core_, options, handler);
      },
      token);
}

inline auto Resource::acquire() { return acquire(AcquireOptions{}); }

inline Resource::Server Resource::try_acquire() {
  return Server(core_->try_begin() ? core_ : nullptr);
}

}  // namespace sluice::sim
