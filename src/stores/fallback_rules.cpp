#include "src/stores/fallback_rules.hpp"

#include <algorithm>

#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/rules/wait_line.hpp"

namespace sluice::detail {
namespace {

/// What is divided among clients.
enum class Divided : std::uint8_t { nothing, limit, bucket, plain_bucket, windows, slots };

constexpr std::size_t no_wait = 0;  // argument 0 is the limit

struct Rule {
  const Operation* operation;
  Substitute substitute;
  Divided divided = Divided::nothing;
  std::size_t max_wait = no_wait;  ///< which argument says how far ahead a grant may lie
};

// Arguments of SlidingWindowRule and of SlotLockRule, and of token_bucket_reserve behind its shape.
constexpr std::size_t window_wait = 2;
constexpr std::size_t slot_wait = 2;
constexpr std::size_t bucket_wait = 6;

/// Operations that are not here have no substitute.
const std::array rules{
    Rule{&token_bucket_take, Substitute::fresh, Divided::plain_bucket},
    Rule{&token_bucket_peek, Substitute::fresh, Divided::plain_bucket},
    Rule{&token_bucket_reserve, Substitute::fresh, Divided::bucket, bucket_wait},
    Rule{&token_bucket_reserve_some, Substitute::fresh, Divided::bucket},
    Rule{&token_bucket_look, Substitute::fresh, Divided::bucket, bucket_wait},
    Rule{&sliding_window_take, Substitute::fresh, Divided::windows, window_wait},
    Rule{&sliding_window_peek, Substitute::fresh, Divided::windows, window_wait},
    Rule{&sliding_window_counter_take, Substitute::fresh, Divided::limit},
    Rule{&sliding_window_counter_peek, Substitute::fresh, Divided::limit},
    Rule{&fixed_window_take, Substitute::fresh, Divided::limit},
    Rule{&fixed_window_peek, Substitute::fresh, Divided::limit},
    Rule{&shared_sliding_window_expect, Substitute::waved},
    Rule{&shared_token_bucket_take, Substitute::blank},
    Rule{&shared_token_bucket_peek, Substitute::blank},
    Rule{&shared_token_bucket_reserve, Substitute::blank},
    Rule{&leases_acquire, Substitute::fresh, Divided::limit},
    Rule{&leases_peek, Substitute::fresh, Divided::limit},
    Rule{&leases_release, Substitute::lease, Divided::limit},
    Rule{&leases_renew, Substitute::lease, Divided::limit},
    Rule{&slot_lock_take, Substitute::fresh, Divided::slots, slot_wait},
    Rule{&slot_lock_peek, Substitute::fresh, Divided::slots, slot_wait},
    Rule{&gate_pass, Substitute::fresh},
    Rule{&gate_peek, Substitute::fresh},
    Rule{&gate_close, Substitute::here},
    Rule{&utilization_shed, Substitute::fresh},
    Rule{&utilization_peek, Substitute::fresh},
    Rule{&utilization_sample, Substitute::here},
    Rule{&wait_line_enter, Substitute::waved},
    Rule{&wait_line_turn, Substitute::waved},
    Rule{&wait_line_leave, Substitute::waved},
    Rule{&wait_line_peek, Substitute::waved},
};

Rule rule_of(const Operation& operation) noexcept {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const Rule& rule) { return rule.operation == &operation; });
  return found == rules.end() ? Rule{&operation, Substitute::none} : *found;
}

/// Of a bucket's first three arguments. Tokens drain `clients` times as slowly, exactly.
void divide_bucket(Arguments& args, Word clients) noexcept {
  args[0] /= clients;
  args[2] *= clients;
}

}  // namespace

Substitute substitute_of(const Operation& operation) noexcept {
  return rule_of(operation).substitute;
}

void forget_charge(const Operation& operation, std::span<Word> output) noexcept {
  if (&operation == &token_bucket_reserve || &operation == &token_bucket_reserve_some ||
      &operation == &token_bucket_look) {
    output[1] = output[2] = 0;  // level and stamp
  }
  if (&operation == &leases_acquire) output[2] = 0;  // the fence: lower than all that were granted
}

bool take_share(Step& step, Word clients, std::array<Word, max_table_words>& table) noexcept {
  step.binding = nullptr;
  Arguments& args = step.args;
  const Rule rule = rule_of(*step.operation);
  const Divided divided = rule.divided;
  // Less than one unit for each; and with it, no product below leaves its range.
  if (divided != Divided::nothing && divided != Divided::slots && args[0] < clients) return false;
  switch (divided) {
    case Divided::nothing:
      break;
    case Divided::limit:
      args[0] /= clients;
      break;
    case Divided::plain_bucket:
      divide_bucket(args, clients);
      args[3] = (args[0] * args[2] + args[1] - 1) / args[1];
      break;
    case Divided::bucket:
      divide_bucket(args, clients);
      if (step.operation == &token_bucket_reserve_some) args[7] = std::min(args[7], args[0]);
      break;
    case Divided::windows:
      args[0] /= clients;
      std::copy(step.table.begin(), step.table.end(), table.begin());
      for (std::size_t i = 0; i + 1 < step.table.size(); i += 2) table[i] /= clients;
      step.table = std::span<const Word>(table).first(step.table.size());
      break;
    case Divided::slots:
      if (args[1] > SlotLockRule::max_interval / clients) return false;
      args[1] *= clients;
      break;
  }
  // A grant ahead would fall into the time when the primary grants as well.
  if (rule.max_wait != no_wait) args[rule.max_wait] = 0;
  return step.operation->check(args) >= 0;
}

}  // namespace sluice::detail
