// Requests about the wait line, and wake-ups of its processes.
#include "src/waiting/queue_ticket.hpp"

#include "sluice/decide.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {

void QueueTicket::leave(Word at) noexcept try {
  const Step step{&wait_line_leave, key(), {word_limit, client_, at}};
  auto wake_next = [ticket = shared_from_this()](const Outcome& outcome) noexcept {
    if (!outcome.error && outcome.output[1] != 0) ticket->wake(outcome.output[1], Woken::by_turn);
  };
  store_.execute(step, completion_of(std::move(wake_next)));
} catch (const std::bad_alloc&) {
  return;  // the ticket ends with its TTL
}

void QueueTicket::listen(const std::shared_ptr<WaitQueues>& queues,
                         const std::string& queue) noexcept try {
  if (store_.is_over()) return;
  const auto subscribe = [&](Woken by) {
    const std::string name = wake_up_name(name_, client_, by);
    return store_.get().subscribe({tag_, name}, [weak = std::weak_ptr(queues), queue, by] {
      if (const auto alive = weak.lock()) alive->wake_first(queue, by);
    });
  };
  turns_ = subscribe(Woken::by_turn);
  releases_ = subscribe(Woken::by_release);
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

}  // namespace sluice::detail
