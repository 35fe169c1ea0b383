#include "src/waiting/wake_up.hpp"

#include <new>

#include "sluice/detail/gives_back.hpp"
#include "sluice/rules/wait_line.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

// A byte that names do not contain, so that no limiter's own key has this name.
constexpr char separator = '\x1f';

}  // namespace

std::string wait_line_name(const Key& key) {
  // The number is of the layout of its state: processes with another share no wait line.
  std::string name = std::string("line2") + separator + std::string(key.name());
  if (!key.unit().empty()) name += separator + std::string(key.unit());
  return name;
}

std::string wake_up_name(std::string_view line_name, Word client, Woken by) {
  std::string name = std::string(line_name) + separator + std::to_string(client);
  if (by == Woken::by_release) name += separator;
  return name;
}

void wake_client(const StoreRef& store, std::string_view tag, std::string_view line_name,
                 Word client, Woken by) noexcept try {
  const std::string name = wake_up_name(line_name, client, by);
  store.notify({tag, name});
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

WakeUp::Line::Line(const Plan& asked, const Key& key)
    : tag(key.tag()), name(wait_line_name(key)), plan(asked) {
  steps.reserve(asked.steps().size() + 1);
  for (const Step& step : asked.steps()) steps.push_back(step);
  own_output = output_count(asked.steps());
  steps.emplace_back(&wait_line_peek, Key{tag, name}, Arguments{word_limit});
}

WakeUp::WakeUp(WaitQueues* queues) noexcept : waits_(queues) {}

void WakeUp::ask_others(std::optional<Plan>& plan) noexcept try {
  if (!is_valid(*key_)) return;
  line_ = std::make_unique<Line>(*plan, *key_);
  if (is_valid(line_->steps.back().key)) {
    plan = plan->with_steps(line_->steps);
  } else {
    line_.reset();  // a name so long that nobody can wait
  }
} catch (const std::bad_alloc&) {
  return;  // other processes ask again by their own timers
}

Plan WakeUp::ask_alone() noexcept {
  const std::unique_ptr<Line> line = std::move(line_);
  return line->plan;
}

Outcome WakeUp::own(const Outcome& outcome) const noexcept {
  if (outcome.error) return outcome;
  const auto steps = outcome.steps.first(line_->plan.steps().size());
  return {{}, steps.back(), steps, outcome.output.first(line_->own_output)};
}

void WakeUp::wake_first(Store& store, const Outcome& outcome, const Outcome& own) const noexcept {
  const Word first = outcome.output[line_->own_output + 1];
  const Word here = static_cast<const WaitQueues*>(waits_)->client();
  if (first == 0 || first == here) return wake_here(own.decision);
  wake_client(StoreRef(store), line_->tag, line_->name, first, Woken::by_release);
}

}  // namespace sluice::detail
