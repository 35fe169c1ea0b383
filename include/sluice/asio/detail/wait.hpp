// Pending waits, and their lists. Threading: each class says.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice::asio::detail {

/// An element of a ring; alone in its ring, it is in no list.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { unlink(); }

  void push_back(Link& link) noexcept {
    link.previous_ = std::exchange(previous_, &link);
    link.next_ = this;
    link.previous_->next_ = &link;
  }
  void unlink() noexcept {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = this;
  }
  [[nodiscard]] bool alone() const noexcept { return next_ == this; }
  [[nodiscard]] Link* next() const noexcept { return next_; }

 private:
  Link* next_ = this;
  Link* previous_ = this;
};

/// A wait of a timer, which may abort it.
class TimerWait : public Link {
 public:
  /// True: it will complete with operation_aborted. False: it is already completing.
  virtual bool abort() noexcept = 0;

 protected:
  ~TimerWait() = default;
};

/// The executor's execution context.
template <class Executor>
[[nodiscard]] boost::asio::execution_context& context_of(const Executor& executor) {
  if constexpr (boost::asio::execution::is_executor<Executor>::value) {
    return boost::asio::query(executor, boost::asio::execution::context);
  } else {
    return executor.context();
  }
}

/// Runs the function on the executor, at once if the executor does that.
template <class Executor, class Function>
void run_on(const Executor& executor, Function&& function) {
  if constexpr (boost::asio::execution::is_executor<Executor>::value) {
    executor.execute(std::forward<Function>(function));
  } else {
    executor.dispatch(std::forward<Function>(function), std::allocator<void>());
  }
}

/// The memory of an operation: from the handler's allocator, else Asio's recycled blocks.
template <class Operation, class Handler>
struct OperationMemory {
  using Base = boost::asio::associated_allocator_t<Handler, boost::asio::recycling_allocator<void>>;
  using Allocator = typename std::allocator_traits<Base>::template rebind_alloc<Operation>;

  static Base allocator(const Handler& handler) {
    return boost::asio::get_associated_allocator(handler, boost::asio::recycling_allocator<void>());
  }

  /// REQUIRES: the operation moves the handler out only in a constructor that does not throw.
  template <class... Args>
  static Operation* make(Handler& handler, Args&&... args) {
    Allocator memory(allocator(handler));
    Operation* const place = std::allocator_traits<Allocator>::allocate(memory, 1);
    return ::new (static_cast<void*>(place))
        Operation(std::move(handler), std::forward<Args>(args)...);
  }

  static void destroy(Operation& operation, const Base& base) noexcept {
    Allocator memory(base);
    operation.~Operation();
    std::allocator_traits<Allocator>::deallocate(memory, &operation, 1);
  }
};

}  // namespace sluice::asio::detail
