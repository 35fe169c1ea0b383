// Uncancelled: protects waits from pthread_cancel().
#pragma once

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// Disables the cancellation of the current thread for the lifetime of this object: waits are
/// cancellation points, and cancelling one in a noexcept function would end the process. The thread
/// is cancelled at its next cancellation point after that.
class Uncancelled {
 public:
  Uncancelled() noexcept;
  ~Uncancelled();
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = 0;
};

}  // namespace sluice::detail
