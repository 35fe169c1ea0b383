// Loop: the run queue of a World, for its executors. Threading: the thread of the World.
#pragma once

#include <atomic>
#include <boost/asio/execution_context.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/detail/blocked_call.hpp"
#include "sluice/sim/detail/pool.hpp"
#include "sluice/sim/timeline.hpp"
#include "sluice/store.hpp"

namespace sluice::sim::detail {

/// A posted function; it owns its memory.
class Posted {
 public:
  /// Runs the function, or only destroys it; the object is destroyed when this returns.
  void finish(bool run) { function_(*this, run); }

 protected:
  using Function = void (*)(Posted& self, bool run);
  explicit Posted(Function function) noexcept : function_(function) {}
  ~Posted() = default;

 private:
  Function function_;
};

class Loop {
 public:
  Loop(boost::asio::execution_context& context, Timeline& timeline) noexcept
      : context_(context), timeline_(timeline) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] boost::asio::execution_context& context() const noexcept { return context_; }
  [[nodiscard]] Pool& pool() noexcept { return pool_; }

  /// True inside a function that the World runs.
  [[nodiscard]] bool running_here() const noexcept {
    return runner_.load(std::memory_order_relaxed) == sluice::detail::this_thread();
  }
  [[nodiscard]] bool running() const noexcept {
    return runner_.load(std::memory_order_relaxed) != nullptr;
  }
  void enter() noexcept { runner_.store(sluice::detail::this_thread(), std::memory_order_relaxed); }
  void leave() noexcept { runner_.store(nullptr, std::memory_order_relaxed); }

  template <class Function, class Allocator>
  void post(Function&& function, const Allocator& allocator);

  void work_started() noexcept { ++work_; }
  void work_finished() noexcept { --work_; }
  [[nodiscard]] std::size_t work() const noexcept { return work_; }

  /// Stores the exception that is being handled, the first one of an event, until the event has
  /// ended.
  void capture_exception() noexcept {
    if (!failure_) failure_ = std::current_exception();
  }
  void rethrow_captured() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  /// The action of the events of posted functions.
  static void run_posted(void* posted, std::uint64_t) {
    static_cast<Posted*>(posted)->finish(true);
  }

 private:
  template <class Stored, class Allocator>
  class PostedFunction;

  void enqueue(Posted& posted);

  boost::asio::execution_context& context_;
  Timeline& timeline_;
  std::atomic<const void*> runner_{nullptr};
  std::size_t work_ = 0;
  std::exception_ptr failure_;
  Pool pool_;
};

template <class Stored, class Allocator>
class Loop::PostedFunction final : public Posted {
  using Own = typename std::allocator_traits<Allocator>::template rebind_alloc<PostedFunction>;
  using Traits = std::allocator_traits<Own>;

  // Memory that is freed at the end of a scope.
  struct Memory {
    Own allocator;
    PostedFunction* place;
    ~Memory() {
      if (place != nullptr) Traits::deallocate(allocator, place, 1);
    }
  };

 public:
  template <class F>
  static PostedFunction& make(F&& function, const Allocator& allocator) {
    Own own(allocator);
    Memory memory{own, Traits::allocate(own, 1)};
    ::new (static_cast<void*>(memory.place)) PostedFunction(std::forward<F>(function), own);
    return *std::exchange(memory.place, nullptr);
  }

 private:
  template <class F>
  PostedFunction(F&& function, const Own& allocator)
      : Posted(&PostedFunction::finish_posted),
        stored_(std::forward<F>(function)),
        allocator_(allocator) {}

  // The memory is freed before the function runs, so that its own posts reuse it.
  static void finish_posted(Posted& posted, bool run) {
    auto& self = static_cast<PostedFunction&>(posted);
    Stored stored = take(self);
    if (run) stored();
  }
  static Stored take(PostedFunction& self) {
    const Memory memory{self.allocator_, &self};
    Stored stored = std::move(self.stored_);
    self.~PostedFunction();
    return stored;
  }

  Stored stored_;
  [[no_unique_address]] Own allocator_;
};

template <class Function, class Allocator>
void Loop::post(Function&& function, const Allocator& allocator) {
  using Stored = std::decay_t<Function>;
  if constexpr (std::is_same_v<Allocator, std::allocator<void>>) {
    using Pooled = PoolAllocator<void*>;
    enqueue(PostedFunction<Stored, Pooled>::make(std::forward<Function>(function), Pooled(pool_)));
  } else {
    enqueue(PostedFunction<Stored, Allocator>::make(std::forward<Function>(function), allocator));
  }
}

}  // namespace sluice::sim::detail
