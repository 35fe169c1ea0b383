// Life: lets objects find out whether an object that they refer to has ended. Threading: any member
// from any thread. is_over() may be outdated at once, so that it is reliable only where both
// objects end on one thread.
#pragma once

#include <atomic>
#include <memory>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// A member of an object that others may outlive.
class Life {
 public:
  /// What the others keep. A default-constructed view is never over.
  class View {
   public:
    View() noexcept : View({std::shared_ptr<void>(), &never_}) {}
    View(const View&) noexcept = default;  // no move, which would leave a view of nothing
    View& operator=(const View&) noexcept = default;
    ~View() = default;
    [[nodiscard]] bool is_over() const noexcept { return over_->load(); }

   private:
    friend class Life;
    explicit View(std::shared_ptr<const std::atomic<bool>> over) noexcept
        : over_(std::move(over)) {}
    static inline constinit const std::atomic<bool> never_{false};
    std::shared_ptr<const std::atomic<bool>> over_;  // never null: the calls of limiters look here
  };

  Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  ~Life() { end(); }

  void end() noexcept { over_->store(true); }
  [[nodiscard]] View view() const noexcept { return View(over_); }

 private:
  std::shared_ptr<std::atomic<bool>> over_;
};

}  // namespace sluice::detail
