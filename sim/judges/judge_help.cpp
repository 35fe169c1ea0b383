#include <algorithm>
#include <utility>

#include "sim/judges/judges.hpp"

namespace sluice::sim::scenario {
namespace {

using Help = std::pair<std::string_view, std::string_view>;

constexpr Help helps[] = {
    {bound_judge,
     "In no interval does the limiter grant more than its bound allows; after lost writes, one "
     "grant more for each."},
    {end_judge, "Every wait ends once, with an answer, until its deadline."},
    {recovery_judge,
     "The goodput is back and the backlog gone, unless one grew before any fault, within the time "
     "that the scenario allows after the last fault."},
    {places_judge, "Never are more leases alive than there are places."},
    {vacancy_judge, "No place of a concurrency limit is left free while jobs wait for one."},
    {gates_judge, "No call is made while the gate of its scope is closed."},
    {hints_judge,
     "A request is granted at the time that a refusal named (its hint), and not before."},
    {local_judge, "Grants while the store is away keep the bound of the failure policy."},
    {idle_judge,
     "While jobs wait, a bucket leaves no more units unused than lost answers and crashed workers "
     "have taken."},
    {order_judge, "Callers of one queue are served in the order in which they came."},
    {time_judge,
     "The run does not stand still: never do more events than run.events_per_instant happen at "
     "one instant."},
    {"sometimes", "What the scenario rehearses happens in at least one replication."},
    {"never", "What the scenario rules out happens in no replication."},
};

}  // namespace

std::string_view judge_help(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(helps, name, &Help::first);
  return found == std::end(helps) ? std::string_view() : found->second;
}

}  // namespace sluice::sim::scenario
