// A run loop that has a clock of its own; for those who write execution contexts. sim::World is
// one. Threading: the thread that runs the loop.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <cstdint>

#include "sluice/time.hpp"

namespace sluice {

/// What Clock::loop() returns: waits are events of this loop, so that a handler whose executor
/// belongs to it runs straight from the loop.
class TimedLoop {
 public:
  /// A wait under way. It owns its memory.
  class Wait {
   public:
    /// Completes it, or only destroys it with its handler; gone when this returns. Throws what the
    /// handler throws.
    void finish(bool complete) { function_(*this, complete); }

    /// The loop's own.
    std::uint64_t place = 0;
    /// Addresses that finish() is likely to touch, or any others: for prefetching only.
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
  /// True if handlers of this executor may be called by the loop itself.
  [[nodiscard]] virtual bool calls_for(const boost::asio::any_io_executor& executor) const = 0;

  /// finish(true) is called when the clock shows `when`, never before this returns. A time beyond
  /// word_limit never comes. If the loop is destroyed first, finish(false) is called.
  virtual void set(Wait& wait, Time when) = 0;
  /// True: it is not under way any more, and belongs to the caller.
  virtual bool cancel(Wait& wait) noexcept = 0;

 protected:
  explicit TimedLoop(const boost::asio::execution_context& context) noexcept : context_(context) {}
  ~TimedLoop() = default;

 private:
  const boost::asio::execution_context& context_;
};

}  // namespace sluice
