// What a PrefetchStore knows of the rules: how units are taken ahead of need, what a grant of them
// says, and how the rest goes back. Threading: pure functions.
#pragma once

#include <optional>
#include <span>

#include "sluice/store.hpp"

namespace sluice::prefetch {

/// What a spending step asks for.
struct Request {
  Word cost = 0;
  Word max_wait = 0;        ///< how far ahead the grant may be, in microseconds
  bool refundable = false;  ///< its grant may be refunded later, by its output words
};

/// The request of a step whose units can be held ahead of need; none for any other step, and for a
/// cost of 0, which is a condition.
[[nodiscard]] std::optional<Request> request_of(const Step& step) noexcept;

/// True of a step that changes what a key may spend: a change of its quota or of what was spent.
[[nodiscard]] bool changes_limit(const Operation& operation) noexcept;

/// True of a step after which units that were granted before must not be spent: a block, a reset,
/// another quota.
[[nodiscard]] bool ends_grants(const Step& step) noexcept;

/// True if the step sets a quota: its answer says whether that is another one.
[[nodiscard]] bool sets_quota(const Operation& operation) noexcept;

/// True if the plan has set the quota that was in force already, which changes nothing.
[[nodiscard]] bool changed_nothing(const Plan& plan, const Outcome& outcome) noexcept;

/// The refund of a grant that has output words about its charge.
struct RefundAsked {
  Word amount;
  Word level, stamp, version;  ///< the bucket before the grant
};
[[nodiscard]] std::optional<RefundAsked> refund_of(const Step& step) noexcept;

/// The most units that one request may have: 0 if only the store knows.
[[nodiscard]] Word limit_of(const Step& step) noexcept;

/// How far ahead units may be reserved, in microseconds: 0 if the rule cannot.
[[nodiscard]] Word longest_of(const Step& step) noexcept;

/// A question for units: `least` to `most` now where the rule has partial grants, else `most`; or,
/// with a `max_wait`, `most` at the first instant at which they are there.
struct Ask {
  Word least = 0;
  Word most = 0;
  Word max_wait = 0;
};

/// The step that asks for units like those of `pattern`, a spending step.
[[nodiscard]] Step take_step(const Step& pattern, const Ask& ask) noexcept;

/// Units that the store granted.
struct Taken {
  Word units = 0;
  Word capacity = 0;        ///< 0: as limit_of()
  Word lives = word_limit;  ///< microseconds from the grant until they count no more
  /// The bucket before the grant, for refunds.
  Word level = 0, stamp = 0, version = 0, spent = 0;
};

/// REQUIRES: `outcome` is an allowed one of take_step(pattern, ask).
[[nodiscard]] Taken taken_by(const Step& pattern, const Ask& ask, const Outcome& outcome) noexcept;

/// The step that returns `amount` units of a grant of `granted`; none if nothing would come back.
/// `at` is the store's time of the grant, `age` the microseconds since.
[[nodiscard]] std::optional<Step> refund_step(const Step& pattern, const Taken& taken, Word granted,
                                              Word amount, Word at, Word age) noexcept;

/// Writes the output words of a decision on `step` that was made of `taken`, or of a refusal if
/// that is null, and returns their number.
std::size_t write_output(const Step& step, const Taken* taken, Word capacity,
                         std::span<Word> output) noexcept;

}  // namespace sluice::prefetch
