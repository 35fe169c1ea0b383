// The table of operations: adding an algorithm adds its rows here.
#include "sluice/extend/operation.hpp"

#include "sluice/rules/constant.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/learned_rate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/rules/wait_line.hpp"

namespace sluice {

std::span<const Operation* const> operations() noexcept {
  static constexpr std::array table{
      &token_bucket_acquire,
      &token_bucket_peek,
      &token_bucket_reserve,
      &token_bucket_refund,
      &token_bucket_adjust,
      &token_bucket_peek_reserve,
      &token_bucket_reserve_some,
      &sliding_window_counter_acquire,
      &sliding_window_counter_peek,
      &sliding_window_counter_reset,
      &sliding_window_counter_adjust,
      &fixed_window_acquire,
      &fixed_window_peek,
      &fixed_window_refund,
      &fixed_window_reset,
      &shared_sliding_window_configure,
      &shared_sliding_window_expect,
      &shared_sliding_window_config,
      &fixed_window_adjust,
      &shared_token_bucket_configure,
      &shared_token_bucket_acquire,
      &shared_token_bucket_peek,
      &shared_token_bucket_reserve,
      &shared_token_bucket_refund,
      &shared_token_bucket_adjust,
      &fixed_window_block,
      &sliding_window_counter_block,
      &leases_acquire,
      &leases_release,
      &leases_renew,
      &leases_peek,
      &leases_reset,
      &leases_block,
      &slot_lock_acquire,
      &slot_lock_peek,
      &slot_lock_cancel,
      &slot_lock_reset,
      &slot_lock_block,
      &gate_close,
      &gate_pass,
      &gate_peek,
      &gate_open,
      &utilization_sample,
      &utilization_shed,
      &utilization_peek,
      &utilization_reset,
      &wait_line_enter,
      &wait_line_turn,
      &wait_line_leave,
      &wait_line_peek,
      &sliding_window_acquire,
      &sliding_window_peek,
      &sliding_window_settle,
      &sliding_window_block,
      &sliding_window_reward,
      &sliding_window_reset,
      &token_bucket_refund_in_full,
      &constant_acquire,
      &constant_peek,
      &learned_rate_acquire,
      &learned_rate_peek,
      &learned_rate_limited,
      &learned_rate_adjust,
      &learned_rate_told,
      &learned_rate_block,
      &learned_rate_reset,
  };
  return table;
}

}  // namespace sluice
