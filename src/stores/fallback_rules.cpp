#include "src/stores/fallback_rules.hpp"
#include "sluice/extend/operation.hpp"

#include <algorithm>

namespace sluice::detail {
namespace {

using Share = Operation::Share;

/// Divides the first three arguments of a bucket: tokens drain exactly `clients` times as slowly.
void divide_bucket(Arguments& args, Word clients) noexcept {
  args[0] /= clients;
  args[2] *= clients;
}

}  // namespace

void forget_charge(const Operation& operation, std::span<Word> output) noexcept {
  const auto [first, count] = operation.charge_output;
  for (Word& word : output.subspan(first, count)) word = 0;
}

bool take_share(Step& step, Word clients, std::array<Word, max_table_words>& table) noexcept {
  step.binding = nullptr;
  Arguments& args = step.args;
  const Operation& row = *step.operation;
  if (row.kind == StateKind::constant) return true;  // a share of 0 is 0, of unlimited is unlimited
  // Less than one unit for each client. The check also bounds the products below.
  const bool divides_limit =
      row.share != Share::whole && row.share != Share::interval && row.share != Share::rates;
  if (divides_limit && args[0] < clients) return false;
  switch (row.share) {
    case Share::whole:
      break;
    case Share::limit:
      args[0] /= clients;
      break;
    case Share::plain_bucket:
      divide_bucket(args, clients);
      args[3] = (args[0] * args[2] + args[1] - 1) / args[1];
      break;
    case Share::bucket:
      divide_bucket(args, clients);
      break;
    case Share::windows:
      args[0] /= clients;
      std::copy(step.table.begin(), step.table.end(), table.begin());
      for (std::size_t i = 0; i + 1 < step.table.size(); i += 2) table[i] /= clients;
      step.table = std::span<const Word>(table).first(step.table.size());
      break;
    case Share::interval:
      if (args[1] > word_limit / clients) return false;
      args[1] *= clients;
      break;
    case Share::rates:
      for (std::size_t i = 1; i <= 3; ++i) args[i] /= clients;
      break;
  }
  const Argument* const cost = row.arguments.find(Argument::Role::cost);
  if (cost != nullptr && row.grants == Operation::Grants::up_to_cost) {
    args[cost->index] = std::min(args[cost->index], args[0]);
  }
  // A reservation would come due while the primary grants as well.
  if (const auto* const wait = row.arguments.find(Argument::Role::wait)) args[wait->index] = 0;
  return row.check(args) >= 0;
}

}  // namespace sluice::detail
