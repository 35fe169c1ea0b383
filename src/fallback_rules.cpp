#include "fallback_rules.hpp"

#include <algorithm>

#include "sluice/algorithms/fixed_window.hpp"
#include "sluice/algorithms/gate.hpp"
#include "sluice/algorithms/leases.hpp"
#include "sluice/algorithms/shared_bucket_spend.hpp"
#include "sluice/algorithms/shared_rate.hpp"
#include "sluice/algorithms/sliding_counter.hpp"
#include "sluice/algorithms/sliding_windows.hpp"
#include "sluice/algorithms/slot_lock.hpp"
#include "sluice/algorithms/token_bucket_spend.hpp"
#include "sluice/algorithms/utilization.hpp"
#include "sluice/algorithms/wait_line.hpp"

namespace sluice::detail {
namespace {

/// What is divided among clients.
enum class Divided : std::uint8_t { nothing, limit, bucket, plain_bucket, windows, slots };

struct Rule {
  const Operation* operation;
  Substitute substitute;
  Divided divided = Divided::nothing;
};

/// Operations that are not here have no substitute.
const std::array rules{
    Rule{&token_bucket_take, Substitute::fresh, Divided::plain_bucket},
    Rule{&token_bucket_peek, Substitute::fresh, Divided::plain_bucket},
    Rule{&token_bucket_spend, Substitute::fresh, Divided::bucket},
    Rule{&token_bucket_spend_some, Substitute::fresh, Divided::bucket},
    Rule{&token_bucket_look, Substitute::fresh, Divided::bucket},
    Rule{&sliding_windows_take, Substitute::fresh, Divided::windows},
    Rule{&sliding_windows_peek, Substitute::fresh, Divided::windows},
    Rule{&sliding_counter_take, Substitute::fresh, Divided::limit},
    Rule{&sliding_counter_peek, Substitute::fresh, Divided::limit},
    Rule{&fixed_window_take, Substitute::fresh, Divided::limit},
    Rule{&fixed_window_peek, Substitute::fresh, Divided::limit},
    Rule{&shared_rate_expect, Substitute::waved},
    Rule{&shared_bucket_take, Substitute::blank},
    Rule{&shared_bucket_peek, Substitute::blank},
    Rule{&shared_bucket_spend, Substitute::blank},
    Rule{&leases_acquire, Substitute::fresh, Divided::limit},
    Rule{&leases_peek, Substitute::fresh, Divided::limit},
    Rule{&leases_release, Substitute::lease, Divided::limit},
    Rule{&leases_renew, Substitute::lease, Divided::limit},
    Rule{&slot_lock_take, Substitute::fresh, Divided::slots},
    Rule{&slot_lock_peek, Substitute::fresh, Divided::slots},
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
  const auto found = std::ranges::find(rules, &operation, &Rule::operation);
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

void forget_charge(const Operation& operation, std::span<Word> details) noexcept {
  if (&operation == &token_bucket_spend || &operation == &token_bucket_spend_some ||
      &operation == &token_bucket_look) {
    details[1] = details[2] = 0;  // level and stamp
  }
  if (&operation == &leases_acquire) details[2] = 0;  // the fence: lower than all that were granted
}

bool take_share(Step& step, Word clients, std::array<Word, max_table_words>& table) noexcept {
  step.binding = nullptr;
  Arguments& args = step.args;
  const Divided divided = rule_of(*step.operation).divided;
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
      if (step.operation == &token_bucket_spend_some) args[7] = std::min(args[7], args[0]);
      break;
    case Divided::windows:
      args[0] /= clients;
      std::ranges::copy(step.table, table.begin());
      for (std::size_t i = 0; i + 1 < step.table.size(); i += 2) table[i] /= clients;
      step.table = std::span<const Word>(table).first(step.table.size());
      break;
    case Divided::slots:
      if (args[1] > SlotLockRule::max_interval / clients) return false;
      args[1] *= clients;
      break;
  }
  return step.operation->check(args) >= 0;
}

}  // namespace sluice::detail
