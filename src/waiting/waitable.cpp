// The constructor of Waitable, apart from the rest of waiting: a program that never waits links
// none of it. wait_queues.cpp has the other members.
#include "sluice/limiters/waitable.hpp"

#include "src/waiting/wait_queues.hpp"

namespace sluice {

Waitable::Waitable() : queues_(std::make_shared<detail::WaitQueues>()) {}

}  // namespace sluice
