// The constructor of Waitable, apart from the rest of waiting: a program that never waits links
// none of it. wait_queues.cpp has the other members.
#include "sluice/limiters/waitable.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "sluice/detail/fork_count.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice {

namespace detail {
namespace {

std::array<std::mutex, 64> mutexes;

/// In a forked child nobody unlocks those that other threads of the parent had locked.
void renew_mutexes() {
  for (std::mutex& mutex : mutexes) std::construct_at(&mutex);
}

}  // namespace

std::mutex& wait_mutex(const Store& store) {
  [[maybe_unused]] static const bool registered = (call_in_children(&renew_mutexes), true);
  return mutexes[std::hash<const Store*>{}(&store) / alignof(std::max_align_t) % mutexes.size()];
}

}  // namespace detail

Waitable::Waitable(const Store& store)
    : queues_(std::make_shared<detail::WaitQueues>(detail::wait_mutex(store))),
      who_waits_(queues_.get()) {}

}  // namespace sluice
