// Which step of a trace grants something, and how much: what matchers count.
// Threading: pure functions.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sluice/testing/detail/generators.hpp"
#include "sluice/testing/trace.hpp"

namespace sluice::testing::detail {

/// Where a granting operation says how much is asked for.
struct Grants {
  enum class From : std::uint8_t { one, argument, detail };
  std::string_view operation;
  From from;
  std::size_t index;
};

/// Beside the operations that are known from their generators' spenders.
inline constexpr std::array other_grants{
    Grants{"token_bucket.reserve", Grants::From::argument, 7},
    Grants{"token_bucket.reserve_some", Grants::From::detail, 0},
    Grants{"shared_token_bucket.take", Grants::From::argument, 1},
    Grants{"shared_token_bucket.reserve", Grants::From::argument, 1},
    Grants{"leases.acquire", Grants::From::argument, 1},
    Grants{"slot_lock.take", Grants::From::one, 0},
    Grants{"gate.pass", Grants::From::one, 0},
    Grants{"utilization.shed", Grants::From::one, 0},
};

/// The argument that a spender writes its units to.
inline std::size_t find_cost(const Spender& spender) {
  constexpr Word asked = 12'345;
  Arguments args{};
  spender.ask(args, asked);
  std::size_t index = 0;
  while (index + 1 < args.size() && args[index] != asked) ++index;
  return index;
}

inline std::optional<Grants> find_grants(const Operation& operation) {
  for (const Grants& grants : other_grants) {
    if (grants.operation == operation.name) return grants;
  }
  const Generator* const generator = find_generator(operation.kind);
  if (generator == nullptr || generator->spender == nullptr) return {};
  const Spender& spender = *generator->spender;
  if (spender.take->name != operation.name) return {};
  return Grants{operation.name, Grants::From::argument, find_cost(spender)};
}

/// What a call asks to be granted.
struct Asked {
  const TracedStep* step;  ///< the first that grants
  Word cost;
};

/// Nothing for questions, returns, settings: calls that grant nothing whatever their answer.
inline std::optional<Asked> find_asked(const TracedCall& call) {
  std::size_t told = 0;
  for (const TracedStep& step : call.steps) {
    if (const auto grants = find_grants(*step.operation)) {
      if (grants->from == Grants::From::one) return Asked{&step, 1};
      if (grants->from == Grants::From::argument) return Asked{&step, step.args[grants->index]};
      const std::size_t index = told + grants->index;
      return Asked{&step, index < call.output.size() ? call.output[index] : 0};
    }
    told += output_count(*step.operation, step.table.size());
  }
  return {};
}

}  // namespace sluice::testing::detail
