// TimedLoop: a run loop with a clock of its own, for implementations of execution contexts such as
// sim::World. Threading: the thread that runs the loop.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <cstdint>

#include "sluice/time.hpp"

namespace sluice {

/// The result of Clock::loop(): waits are events of this loop, so that a handler whose executor
/// belongs to the loop runs directly from it.
class TimedLoop {
 public:
  /// A pending wait. It owns its memory.
  class Wait {
   public:
    /// Completes the wait, or only destroys it with its handler; the object is destroyed when this
    /// returns. Throws what the handler throws.
    void finish(bool complete) { function_(*this, complete); }

    /// Used by the loop.
    std::uint64_t place = 0;
    /// Addresses that finish() probably accesses, or any others: for prefetching only.
    std::array<std::uintptr_t, 2> near{};

   protected:
    using Function = void (*)(Wait& self, bool complete);
    explicit Wait(Function function) noexcept : function_(function) {}
    ~Wait() = default;

   private:
    Function function_;
  };

  /// The execution context whose handlers the loop runs.
  [[nodiscard]] const boost::asio::execution_context& context() const noexcept { return context_; }
  /// True if the loop itself may call handlers of this executor.
  [[nodiscard]] virtual bool calls_for(const boost::asio::any_io_executor& executor) const = 0;

  /// Calls finish(true) when the clock shows `when`, never before this returns. A time beyond
  /// word_limit never comes. If the loop is destroyed first, finish(false) is called.
  virtual void set(Wait& wait, Time when) = 0;
  /// True: the wait is no longer pending, and belongs to the caller.
  virtual bool cancel(Wait& wait) noexcept = 0;

 protected:
  explicit TimedLoop(const boost::asio::execution_context& context) noexcept : context_(context) {}
  ~TimedLoop() = default;

 private:
  const boost::asio::execution_context& context_;
};

}  // namespace sluice
