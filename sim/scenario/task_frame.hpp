// The frames of tasks, and how they wait for operations. Threading: the thread of the World.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/sim/world.hpp"
#include "sluice/sim/world/pool.hpp"

namespace sluice::sim::scenario {

template <class T>
class Task;

namespace detail {

/// Freed frames and operations, for the next ones of this thread.
inline sim::detail::Pool& recycled() {
  static thread_local sim::detail::Pool pool;
  return pool;
}

template <class T>
struct RecyclingAllocator {
  using value_type = T;
  RecyclingAllocator() = default;
  template <class U>
  RecyclingAllocator(const RecyclingAllocator<U>&) noexcept {}
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(recycled().allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    recycled().deallocate(memory, count * sizeof(T));
  }
  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) = default;
};

class RootFrame;

/// Owns a suspended coroutine that nobody awaits, and with it the tasks that it awaits. A call
/// resumes it; it owns itself then.
class Root {
 public:
  using promise_type = RootFrame;
  explicit Root(std::coroutine_handle<> frame) noexcept : frame_(frame) {}
  Root(Root&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Root& operator=(Root&&) = delete;
  ~Root() {
    if (frame_) frame_.destroy();
  }
  void operator()() { std::exchange(frame_, nullptr).resume(); }

 private:
  std::coroutine_handle<> frame_;
};

template <class Op, class Signature = boost::asio::completion_signature_of_t<Op>>
class Waiting;

/// What coroutines can await: tasks, and deferred operations of one result.
class Frame {
 public:
  static void* operator new(std::size_t bytes) { return recycled().allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    recycled().deallocate(memory, bytes);
  }
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  /// The frame that awaits this one, directly or not.
  [[nodiscard]] RootFrame& root() const noexcept { return *root_; }

  template <class T>
  [[nodiscard]] Task<T>&& await_transform(Task<T>&& task) const noexcept {
    return std::move(task);
  }
  template <class Op>
  requires boost::asio::is_async_operation<Op>::value [[nodiscard]] auto await_transform(
      Op&& operation) const noexcept {
    return Waiting<Op>(operation);
  }

 protected:
  RootFrame* root_ = nullptr;
};

class RootFrame : public Frame {
 public:
  template <class Done>
  RootFrame(World& world, const Task<void>&, const Done&) noexcept : world_(world) {
    root_ = this;
  }
  Root get_return_object() noexcept { return owner(); }
  [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  /// The exception leaves World::run().
  void unhandled_exception() {
    world_.get_executor().execute(
        [failure = std::current_exception()] { std::rethrow_exception(failure); });
  }

  [[nodiscard]] World::Executor executor() const noexcept { return world_.get_executor(); }
  [[nodiscard]] Root owner() noexcept {
    return Root(std::coroutine_handle<RootFrame>::from_promise(*this));
  }
  void note_wait() noexcept { has_waited_ = true; }

  /// Awaited at the end, which is an event of its own unless one has led to it.
  struct End {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[nodiscard]] bool await_suspend(std::coroutine_handle<RootFrame> frame) const {
      RootFrame& self = frame.promise();
      if (!self.has_waited_) boost::asio::post(self.executor(), self.owner());
      return !self.has_waited_;
    }
    void await_resume() const noexcept {}
  };
  using Frame::await_transform;
  [[nodiscard]] End await_transform(End end) const noexcept { return end; }

 private:
  World& world_;
  bool has_waited_ = false;
};

/// Waits for an operation. Its handler is called on the World's executor; if it is destroyed
/// instead, the World ends, and destroys the coroutine.
template <class Op, class Arg>
class Waiting<Op, void(Arg)> {
 public:
  explicit Waiting(Op& operation) noexcept : operation_(operation) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    frame_ = frame;
    root_ = &frame.promise().root();
    root_->note_wait();
    std::move(operation_)(Handler(*this));
    is_started_ = true;  // it did not throw
  }
  auto await_resume() {
    if constexpr (std::is_same_v<Arg, boost::system::error_code>) {
      if (*result_) throw boost::system::system_error(*result_);
    } else if constexpr (std::is_same_v<Arg, std::exception_ptr>) {
      if (*result_) std::rethrow_exception(*result_);
    } else {
      return std::move(*result_);
    }
  }

 private:
  class Handler {
   public:
    using executor_type = World::Executor;
    using allocator_type = RecyclingAllocator<void>;

    explicit Handler(Waiting& waiting) noexcept : waiting_(&waiting) {}
    Handler(Handler&& other) noexcept : waiting_(std::exchange(other.waiting_, nullptr)) {}
    Handler& operator=(Handler&&) = delete;
    ~Handler() {
      if (waiting_ == nullptr || !waiting_->is_started_) return;
      RootFrame& root = *waiting_->root_;
      // Later: the coroutine may own the operation that is being destroyed.
      boost::asio::post(root.executor(), [owner = root.owner()] {});
    }
    [[nodiscard]] executor_type get_executor() const noexcept {
      return waiting_->root_->executor();
    }
    [[nodiscard]] allocator_type get_allocator() const noexcept { return {}; }
    void operator()(Arg result) {
      Waiting& waiting = *std::exchange(waiting_, nullptr);
      waiting.result_ = &result;
      waiting.frame_.resume();
    }

   private:
    Waiting* waiting_;
  };

  Op& operation_;  // of the co_await expression
  std::coroutine_handle<> frame_;
  RootFrame* root_ = nullptr;
  Arg* result_ = nullptr;  // exists until the coroutine is suspended again
  bool is_started_ = false;
};

/// Of a task: returns to the coroutine that awaits it.
class TaskFrame : public Frame {
 public:
  struct Return {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(
        std::coroutine_handle<Promise> frame) const noexcept {
      return frame.promise().caller_;
    }
    void await_resume() const noexcept {}
  };
  [[nodiscard]] Return final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

  template <class Promise>
  void called_by(std::coroutine_handle<Promise> caller) noexcept {
    caller_ = caller;
    root_ = &caller.promise().root();
  }

 protected:
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::coroutine_handle<> caller_;
  std::exception_ptr failure_;
};

template <class T>
class ResultFrame : public TaskFrame {
 public:
  void return_value(T value) { value_.emplace(std::move(value)); }
  [[nodiscard]] T take() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};
template <>
class ResultFrame<void> : public TaskFrame {
 public:
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

}  // namespace detail
}  // namespace sluice::sim::scenario
