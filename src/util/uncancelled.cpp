// Disables the cancellation of a thread.
#include "sluice/detail/uncancelled.hpp"

#include <pthread.h>

namespace sluice::detail {

Uncancelled::Uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
Uncancelled::~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }

}  // namespace sluice::detail
