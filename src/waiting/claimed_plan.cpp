#include "sluice/detail/claimed_plan.hpp"

#include "sluice/extend/operation.hpp"
#include "src/util/uninitialized_array.hpp"

namespace sluice::detail {
namespace {

/// Grants are the shortest, and of those the ones that have left the most.
bool is_shorter_wait(const Decision& a, const Decision& b) noexcept {
  if (a.allowed != b.allowed) return a.allowed;
  return a.allowed ? a.remaining > b.remaining : a.retry_after < b.retry_after;
}

}  // namespace

ClaimedPlan::ClaimedPlan(const ClaimedLimits& limits) : limits_(limits) {
  for (const auto& limit : limits) size_ += limit->step_count();
  parts_.reserve(size_ + 1);
}

void ClaimedPlan::add(const Step& step, std::size_t limit, bool decides, Room& room) noexcept {
  room.make(parts_.size(), [&] { return step; });
  parts_.push_back({limit, output_count(*step.operation, step.table.size()), decides});
}

std::span<const Step> ClaimedPlan::preparations(Room& room, std::error_code& error,
                                                std::size_t& limit) noexcept {
  parts_.clear();
  for (std::size_t i = 0; i < limits_.size() && !error; ++i) {
    limit = i;
    if (const auto step = limits_[i]->preparation(error)) add(*step, i, true, room);
  }
  return {room.data(), parts_.size()};
}

std::span<const Step> ClaimedPlan::questions(Room& room, const std::optional<Step>& turn) noexcept {
  parts_.clear();
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (const auto condition = limits_[i]->condition()) add(*condition, i, false, room);
    add(limits_[i]->step(), i, true, room);
  }
  if (turn) add(*turn, limits_.size(), false, room);
  return {room.data(), parts_.size()};
}

Outcome ClaimedPlan::by_limits(const Outcome& outcome, std::span<Decision> each) const noexcept {
  Outcome own = outcome;
  own.decision.step = static_cast<std::uint16_t>(limit_of(outcome.decision.step));
  if (outcome.error) return own;
  for_each_limit(outcome,
                 [&](std::size_t limit, const Outcome& its) { each[limit] = its.decision; });
  own.steps = each;
  const bool has_turn = parts_.back().limit == limits_.size();
  if (has_turn || !parts_[outcome.decision.step].decides) {
    own.decision = *std::max_element(each.begin(), each.end(), is_shorter_wait);
    own.decision.allowed = outcome.decision.allowed;
  }
  return own;
}

}  // namespace sluice::detail
