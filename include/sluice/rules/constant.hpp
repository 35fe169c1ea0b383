// Constant: the rule of a limit of 0, which never grants, and of an unlimited one, which always
// does. It has no state: the answer is in the arguments.
//
//     granted = min(cost, limit)
//     allowed iff granted >= least
//
// A refusal is for ever: retry_after is Decision::never. Limiters with such a limit ask this rule
// in the place of their own, under a key of its own, so that what they have stored stays as it is
// and counts again under another limit.
#pragma once

#include "sluice/decision.hpp"
#include "sluice/extend/operation.hpp"

namespace sluice {

struct ConstantRule {
  struct Args {
    Word limit;  ///< 0 or unlimited
    Word cost;   ///< from 0
    Word least;  ///< 0 to the cost
    Word wait;   ///< microseconds, 0 to word_limit; changes nothing
  };

  /// Output words of constant.acquire: the units granted; then what a lease needs, no place, no
  /// number, and that it never expires.
  static constexpr std::uint8_t output = 4;
};

/// Grants. As a row of other limiters, it is the one that spends.
extern const Operation constant_acquire;
/// The same without output: a question, or a change, which has no effect.
extern const Operation constant_peek;

}  // namespace sluice
