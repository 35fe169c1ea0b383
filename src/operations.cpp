// The table of operations: adding an algorithm adds its rows here.
#include "sluice/operation.hpp"

#include "sluice/algorithms/fixed_window.hpp"
#include "sluice/algorithms/gate.hpp"
#include "sluice/algorithms/leases.hpp"
#include "sluice/algorithms/shared_bucket_spend.hpp"
#include "sluice/algorithms/shared_rate.hpp"
#include "sluice/algorithms/sliding_counter.hpp"
#include "sluice/algorithms/sliding_windows.hpp"
#include "sluice/algorithms/slot_lock.hpp"
#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/algorithms/token_bucket_spend.hpp"
#include "sluice/algorithms/utilization.hpp"
#include "sluice/algorithms/wait_line.hpp"

namespace sluice {

std::span<const Operation* const> operations() noexcept {
  static constexpr std::array table{
      &token_bucket_take,
      &token_bucket_peek,
      &token_bucket_spend,
      &token_bucket_give_back,
      &token_bucket_set,
      &token_bucket_look,
      &token_bucket_spend_some,
      &sliding_windows_take,
      &sliding_windows_peek,
      &sliding_windows_give_back,
      &sliding_windows_reset,
      &sliding_counter_take,
      &sliding_counter_peek,
      &sliding_counter_reset,
      &sliding_counter_adjust,
      &fixed_window_take,
      &fixed_window_peek,
      &fixed_window_give_back,
      &fixed_window_reset,
      &shared_rate_set,
      &shared_rate_expect,
      &shared_rate_read,
      &fixed_window_adjust,
      &shared_bucket_set,
      &shared_bucket_take,
      &shared_bucket_peek,
      &shared_bucket_spend,
      &shared_bucket_give_back,
      &shared_bucket_adjust,
      &fixed_window_block,
      &sliding_counter_block,
      &leases_acquire,
      &leases_release,
      &leases_renew,
      &leases_peek,
      &leases_reset,
      &leases_block,
      &slot_lock_take,
      &slot_lock_peek,
      &slot_lock_cancel,
      &slot_lock_reset,
      &slot_lock_block,
      &sliding_windows_block,
      &sliding_windows_reward,
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
  };
  return table;
}

}  // namespace sluice
