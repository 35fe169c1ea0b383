// Waiting that pthread_cancel() does not break off.
#pragma once

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// While it lives, the thread that made it is not cancelled: waiting is a cancellation point, and
/// what waits here must not throw, so that cancelling it would end the process. It is cancelled at
/// its next such point behind this.
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
