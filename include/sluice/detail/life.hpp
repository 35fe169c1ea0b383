// Whether something that others refer to has ended. Threading: any member from any thread; an
// answer says nothing of the next moment, so it serves those whose ends lie on one thread.
#pragma once

#include <atomic>
#include <memory>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// A member of what others may outlive.
class Life {
 public:
  /// What they keep of it. A default one is never over.
  class View {
   public:
    View() = default;
    [[nodiscard]] bool is_over() const noexcept { return over_ && over_->load(); }

   private:
    friend class Life;
    explicit View(std::shared_ptr<const std::atomic<bool>> over) noexcept
        : over_(std::move(over)) {}
    std::shared_ptr<const std::atomic<bool>> over_;
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
