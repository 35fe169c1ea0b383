// Requests about the line of all processes, and waking who is next there.
#include "sluice/waiting/place.hpp"

#include "sluice/decide.hpp"
#include "sluice/waiting/lines.hpp"
#include "sluice/waiting/waiter_for.hpp"

namespace sluice::detail {
namespace {

// No letter of names that people give: a limiter's own key is another.
constexpr char separator = '\x1f';

/// What the process watches.
std::string watched_name(std::string_view line_name, Word client) {
  return std::string(line_name) + separator + std::to_string(client);
}

}  // namespace

std::string wait_line_name(std::string_view name) {
  return std::string("line") + separator + std::string(name);
}

void wake_client(Store& store, std::string_view tag, std::string_view line_name,
                 Word client) noexcept try {
  store.notify({tag, watched_name(line_name, client)});
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

void Place::leave(Word arrival) noexcept try {
  const Step step{&wait_line_leave, key(), {word_limit, client_, arrival}};
  decide_then(store_, step, [place = shared_from_this()](const Outcome& outcome) noexcept {
    if (!outcome.error && outcome.details[1] != 0) place->wake(outcome.details[1]);
  });
} catch (const std::bad_alloc&) {
  return;  // the place ends with its TTL
}

void Place::listen(const std::shared_ptr<Lines>& lines, const std::string& line) noexcept try {
  const std::string name = watched_name(name_, client_);
  watch_ = store_.watch({tag_, name}, [weak = std::weak_ptr(lines), line] {
    if (const auto alive = weak.lock()) alive->freed(line);
  });
} catch (const std::bad_alloc&) {
  return;  // the first in line asks by its own timer
}

Return::Return(const Step& give_back, std::shared_ptr<Lines> lines) noexcept
    : steps_{give_back, give_back},
      details_(detail_count(*give_back.operation, give_back.table.size())),
      lines_(std::move(lines)) {
  if (!lines_) return;
  try {
    line_ = line_of(give_back.key);
    if (!lines_->options().across_processes) return;
    tag_ = give_back.key.tag;
    wait_line_ = wait_line_name(give_back.key.name);
    steps_[1] = {&wait_line_peek, {tag_, wait_line_}, {word_limit}};
    count_ = 2;
  } catch (const std::bad_alloc&) {
    lines_ = nullptr;  // who waits asks again by itself
  }
}

void Return::wake(Store& store, std::span<const Word> told) const noexcept {
  if (!lines_) return;
  const Word first = count_ == 2 ? told[details_ + 1] : 0;
  if (first == 0 || first == lines_->client()) {
    lines_->freed(line_);
  } else {
    wake_client(store, tag_, wait_line_, first);
  }
}

}  // namespace sluice::detail
