#include "backends/redis/scripts/script_constants.hpp"

#include <algorithm>
#include <iterator>

#include "sluice/error.hpp"
#include "sluice/extend/idempotency_record.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/learned_rate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/rules/shared_token_bucket.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/rules/wait_line.hpp"
#include "src/rules/token_bucket_ahead.hpp"

namespace sluice::redis_detail {
namespace {

struct Constant {
  std::string_view name;
  Word value;
};

constexpr Word status(Errc code) { return -static_cast<Word>(code); }

constexpr Constant constants[] = {
    {"word_limit", word_limit},
    {"Errc.cost_exceeds_capacity", status(Errc::cost_exceeds_capacity)},
    {"Errc.invalid_cost", status(Errc::invalid_cost)},
    {"Errc.wrong_type", status(Errc::wrong_type)},
    {"Errc.wrong_kind", status(Errc::wrong_kind)},
    {"Errc.corrupt_state", status(Errc::corrupt_state)},
    {"Errc.invalid_argument", status(Errc::invalid_argument)},
    {"Errc.not_configured", status(Errc::not_configured)},
    {"Errc.config_changed", status(Errc::config_changed)},
    {"Errc.outside_calendar", status(Errc::outside_calendar)},
    {"Errc.id_reused", status(Errc::id_reused)},
    {"IdempotencyRecord.kind", static_cast<Word>(StateKind::idempotency_record)},
    {"IdempotencyRecord.kept_for", id_kept_for.count()},
    {"IdempotencyRecord.ttl", (id_kept_for.count() + Operation::clock_slack) / 1000 + 1000},
    {"fixed_window.max_ahead", FixedWindowRule::max_ahead},
    {"fixed_window.max_block", FixedWindowRule::max_block},
    {"fixed_window.max_limit", FixedWindowRule::max_limit},
    {"fixed_window.max_used", FixedWindowRule::max_used},
    {"fixed_window.max_width", FixedWindowRule::max_width},
    {"gate.max_ahead", GateRule::max_ahead},
    {"gate.max_cap", GateRule::max_cap},
    {"gate.max_ramp", GateRule::max_ramp},
    {"learned_rate.max_ahead", LearnedRateRule::max_ahead},
    {"learned_rate.max_block", LearnedRateRule::max_block},
    {"learned_rate.max_cost", LearnedRateRule::max_cost},
    {"learned_rate.max_count", LearnedRateRule::max_count},
    {"learned_rate.max_debt", LearnedRateRule::max_debt},
    {"learned_rate.max_forget", LearnedRateRule::max_forget},
    {"learned_rate.max_need", LearnedRateRule::max_need},
    {"learned_rate.max_rate", LearnedRateRule::max_rate},
    {"learned_rate.min_forget", LearnedRateRule::min_forget},
    {"learned_rate.minute", LearnedRateRule::minute},
    {"learned_rate.saved", LearnedRateRule::saved},
    {"learned_rate.step", LearnedRateRule::step},
    {"leases.block_id", LeasesRule::block_id[2]},
    {"leases.block_weight", LeasesRule::block_weight},
    {"leases.max_ahead", LeasesRule::max_ahead},
    {"leases.max_block", LeasesRule::max_block},
    {"leases.max_holders", LeasesRule::max_holders},
    {"leases.max_reclaimed", LeasesRule::max_reclaimed},
    {"leases.max_tier", LeasesRule::max_tier},
    {"leases.max_ttl", LeasesRule::max_ttl},
    {"leases.min_ttl", LeasesRule::min_ttl},
    {"leases.unread", LeasesRule::unread},
    {"shared_sliding_window.max_interval", SharedSlidingWindowRule::max_interval},
    {"shared_sliding_window.max_keep_alive", SharedSlidingWindowRule::max_keep_alive},
    {"shared_sliding_window.max_rate", SharedSlidingWindowRule::max_rate},
    {"shared_sliding_window.max_reserved", SharedSlidingWindowRule::max_reserved},
    {"shared_token_bucket.max_ahead", SharedTokenBucketRule::max_ahead},
    {"shared_token_bucket.max_keep_alive", SharedTokenBucketRule::max_keep_alive},
    {"sliding_window.first_entries", SlidingWindowRule::first_entries},
    {"sliding_window.max_ahead", SlidingWindowRule::max_ahead},
    {"sliding_window.max_assumed", SlidingWindowRule::max_assumed},
    {"sliding_window.max_entries", SlidingWindowRule::max_entries},
    {"sliding_window.max_limit", SlidingWindowRule::max_limit},
    {"sliding_window.max_span", SlidingWindowRule::max_span},
    {"sliding_window.max_units", SlidingWindowRule::max_units},
    {"sliding_window.max_windows", static_cast<Word>(SlidingWindowRule::max_windows)},
    {"sliding_window_counter.max_ahead", SlidingWindowCounterRule::max_ahead},
    {"sliding_window_counter.max_block", SlidingWindowCounterRule::max_block},
    {"sliding_window_counter.max_limit", SlidingWindowCounterRule::max_limit},
    {"sliding_window_counter.max_span", SlidingWindowCounterRule::max_span},
    {"slot_lock.max_ahead", SlotLockRule::max_ahead},
    {"slot_lock.max_horizon", SlotLockRule::max_horizon},
    {"slot_lock.max_interval", SlotLockRule::max_interval},
    {"token_bucket.max_ahead", TokenBucketRule::max_ahead},
    {"token_bucket.most_level", token_bucket::most_level},
    {"token_bucket.max_interval", TokenBucketReserve::max_interval},
    {"token_bucket.max_longest", TokenBucketReserve::max_longest},
    {"utilization.max_ahead", UtilizationRule::max_ahead},
    {"utilization.max_span", UtilizationRule::max_span},
    {"utilization.max_tiers", UtilizationRule::max_tiers},
    {"utilization.one", UtilizationRule::one},
    {"wait_line.max_places", WaitLineRule::max_places},
    {"wait_line.max_ttl", WaitLineRule::max_ttl},
    {"wait_line.max_units", WaitLineRule::max_units},
    {"wait_line.min_ttl", WaitLineRule::min_ttl},
};

}  // namespace

const Word* find_constant(std::string_view name) noexcept {
  const auto* const found = std::find_if(std::begin(constants), std::end(constants),
                                         [&](const Constant& each) { return each.name == name; });
  return found == std::end(constants) ? nullptr : &found->value;
}

}  // namespace sluice::redis_detail
