// Requests about the wait line, and wake-ups of its processes.
#include "src/waiting/queue_ticket.hpp"

#include "sluice/decide.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A byte that names do not contain, so that no limiter's own key has this name.
constexpr char separator = '\x1f';

/// The name of the key that a process subscribes to.
std::string wake_up_name(std::string_view line_name, Word client) {
  return std::string(line_name) + separator + std::to_string(client);
}

}  // namespace

std::string wait_line_name(const Key& key) {
  // The number is of the layout of its state: processes with another share no wait line.
  std::string name = std::string("line2") + separator + std::string(key.name());
  if (!key.unit().empty()) name += separator + std::string(key.unit());
  return name;
}

void wake_client(const StoreRef& store, std::string_view tag, std::string_view line_name,
                 Word client) noexcept try {
  const std::string name = wake_up_name(line_name, client);
  store.notify({tag, name});
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

void QueueTicket::leave(Word at) noexcept try {
  const Step step{&wait_line_leave, key(), {word_limit, client_, at}};
  auto wake_next = [ticket = shared_from_this()](const Outcome& outcome) noexcept {
    if (!outcome.error && outcome.output[1] != 0) ticket->wake(outcome.output[1]);
  };
  store_.execute(step, completion_of(std::move(wake_next)));
} catch (const std::bad_alloc&) {
  return;  // the ticket ends with its TTL
}

void QueueTicket::listen(const std::shared_ptr<WaitQueues>& queues,
                         const std::string& queue) noexcept try {
  if (store_.is_over()) return;
  const std::string name = wake_up_name(name_, client_);
  subscription_ = store_.get().subscribe({tag_, name}, [weak = std::weak_ptr(queues), queue] {
    if (const auto alive = weak.lock()) alive->wake_first(queue, WaitQueues::Woken::by_turn);
  });
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

}  // namespace sluice::detail
