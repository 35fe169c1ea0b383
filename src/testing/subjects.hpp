// The keys that claims make, and the requests that several claims share. Threading: one thread.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "src/testing/model.hpp"

namespace sluice::testing::detail {

using Subjects = std::deque<Subject>;  // never moves its elements

/// `count` keys of random kinds and configurations; with one tag if `tag` is given.
[[nodiscard]] Subjects make_subjects(Context& context, std::size_t count,
                                     const std::string& tag = {});

void bind(Store& store, Subject& subject);

/// A key for claims by example: with a spender it has exactly `limit` units; other kinds are
/// random.
[[nodiscard]] Configuration plain_configuration(Context& context, const Generator& generator,
                                                Word limit);

/// A call that changes the state of a fresh key, or may change it.
[[nodiscard]] Step plain_step(Context& context, Subject& subject);

/// Runs `claim` for every kind.
void for_each_kind(const std::function<void(const Generator&)>& claim);

/// Runs `claim` for every kind whose units are refilled with time.
void for_each_spender(const std::function<void(const Generator&, const Spender&)>& claim);

/// Spends the subject's last unit by requests for one at a time, of which `limit` must be admitted.
void exhaust(Context& context, Subject& subject, Word limit);

/// Requires that the key is unused: all of its `limit` units are available, or else random calls
/// are answered as on a fresh key.
void require_untouched(Context& context, Subject& subject, Word limit);

/// Makes random requests until one is refused with a hint; returns its decision, or one that is
/// allowed.
[[nodiscard]] Decision draw_refusal(Context& context, Subject& subject, Step& step);

}  // namespace sluice::testing::detail
