// The usual token bucket: a mutex, doubles and the monotonic clock. The baseline of the memory
// store.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace sluice::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class MutexBucket {
 public:
  MutexBucket(double rate, double burst)
      : rate_(rate), burst_(burst), tokens_(burst), last_(seconds_now()) {}

  bool try_acquire(double cost = 1) {
    const std::lock_guard lock(mutex_);
    const double now = seconds_now();
    tokens_ = std::min(burst_, tokens_ + (now - last_) * rate_);
    last_ = now;
    if (tokens_ < cost) return false;
    tokens_ -= cost;
    return true;
  }

 private:
  std::mutex mutex_;
  double rate_;
  double burst_;
  double tokens_;
  double last_;
};

}  // namespace sluice::bench
