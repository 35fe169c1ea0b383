// Requests about the line of all processes, and waking who is next there.
#include "sluice/detail/queue_ticket.hpp"

#include "sluice/decide.hpp"
#include "sluice/detail/wait_queues.hpp"
#include "sluice/detail/waiter_for.hpp"

namespace sluice::detail {
namespace {

// No letter of names that people give: a limiter's own key is another.
constexpr char separator = '\x1f';

/// What the process watches.
std::string watched_name(std::string_view line_name, Word client) {
  return std::string(line_name) + separator + std::to_string(client);
}

}  // namespace

std::string wait_line_name(const Key& key) {
  std::string name = std::string("line") + separator + std::string(key.name());
  if (!key.unit().empty()) name += separator + std::string(key.unit());
  return name;
}

void wake_client(const StoreRef& store, std::string_view tag, std::string_view line_name,
                 Word client) noexcept try {
  store.notify({tag, watched_name(line_name, client)});
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

void QueueTicket::leave(Word arrival) noexcept try {
  const Step step{&wait_line_leave, key(), {word_limit, client_, arrival}};
  store_.execute(step, completion_of([place = shared_from_this()](const Outcome& outcome) noexcept {
                   if (!outcome.error && outcome.output[1] != 0) place->wake(outcome.output[1]);
                 }));
} catch (const std::bad_alloc&) {
  return;  // the place ends with its TTL
}

void QueueTicket::listen(const std::shared_ptr<WaitQueues>& lines, const std::string& line) noexcept
    try {
  if (store_.is_over()) return;
  const std::string name = watched_name(name_, client_);
  watch_ = store_.get().subscribe({tag_, name}, [weak = std::weak_ptr(lines), line] {
    if (const auto alive = weak.lock()) alive->freed(line);
  });
} catch (const std::bad_alloc&) {
  return;  // the first in line asks by its own timer
}

Release::Release(const Step& refund, std::shared_ptr<WaitQueues> lines) noexcept
    : steps_{refund, refund},
      output_(output_count(*refund.operation, refund.table.size())),
      lines_(std::move(lines)) {
  if (!lines_) return;
  try {
    line_ = line_of(refund.key);
    if (!lines_->options().across_processes) return;
    tag_ = refund.key.tag();
    wait_line_ = wait_line_name(refund.key);
    steps_[1] = {&wait_line_peek, {tag_, wait_line_}, {word_limit}};
    count_ = 2;
  } catch (const std::bad_alloc&) {
    lines_ = nullptr;  // who waits asks again by itself
  }
}

void Release::wake(Store& store, std::span<const Word> told) const noexcept {
  if (!lines_) return;
  const Word first = count_ == 2 ? told[output_ + 1] : 0;
  if (first == 0 || first == lines_->client()) {
    lines_->freed(line_);
  } else {
    wake_client(StoreRef(store), tag_, wait_line_, first);
  }
}

}  // namespace sluice::detail
