// A hook that the system runs in each forked child increments the counter.
#include "sluice/detail/fork_count.hpp"

#include <pthread.h>

#include <atomic>
#include <new>

namespace sluice::detail {
namespace {

std::atomic<unsigned> forks{0};

void count_fork() { forks.fetch_add(1); }

}  // namespace

unsigned fork_count() {
  [[maybe_unused]] static const bool registered = (call_in_children(&count_fork), true);
  return forks.load();
}

void call_in_children(void (*hook)()) {
  if (::pthread_atfork(nullptr, nullptr, hook) != 0) throw std::bad_alloc();
}

}  // namespace sluice::detail
