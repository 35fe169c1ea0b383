// What the descriptions of all kinds share. Pure functions.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "tool/describe.hpp"

namespace sluice::tool {

/// A state that is described, and where the answer goes.
struct Subject {
  const KeyName& name;
  std::span<const Word> words;
  const Given& given;
  Word now;
  Description& result;

  void add(std::string_view field, Value value) const {
    result.fields.push_back({std::string(field), std::move(value)});
  }
};

struct Answer {
  Verdict verdict;
  std::array<Word, max_output> output{};
};

/// Runs a kernel. A corrupt state makes the description unsound.
[[nodiscard]] Answer ask(const Subject& subject, const Operation& row, const Arguments& args,
                         std::span<const Word> table = {});

/// Tells what is used by the answer to a request of nothing under the limit `most`, which is so
/// large that it leaves everything open; and when nothing is used any more.
void tell_use(const Subject& subject, const Verdict& verdict, Word most);

/// Tells the limit, what remains of it, and the verdict on the request that is given.
void tell_limit(const Subject& subject, Word limit, const Verdict& verdict);

/// Tells a limit of 0 or an unlimited one, and its verdict on the request that is given.
void tell_constant(const Subject& subject, Word limit);

/// "3 of 5 used", unless there is a summary.
void summarize(const Subject& subject);

/// The one limit that is given; empty: none. Throws std::invalid_argument if there are several.
[[nodiscard]] std::optional<Word> only_limit(const Given& given);

/// The quota of a token bucket, whose unit tells its rate. Empty: its burst is not known. Throws
/// std::invalid_argument if another rate is given.
[[nodiscard]] std::optional<Quota> bucket_quota(const KeyName& name, const Given& given,
                                                const Quota& rate);

/// The limits of a key's windows; empty if they are not known. `limit_in_state`: the largest, or 0.
[[nodiscard]] std::vector<Word> window_limits(const Given& given, const std::vector<Word>& spans,
                                              Word limit_in_state);

void describe_token_bucket(const Subject& subject);
void describe_shared_token_bucket(const Subject& subject);
void describe_learned_rate(const Subject& subject);
void describe_slot_lock(const Subject& subject);
void describe_fixed_window(const Subject& subject);
void describe_sliding_window(const Subject& subject);
void describe_sliding_window_counter(const Subject& subject);
void describe_shared_sliding_window(const Subject& subject);
void describe_leases(const Subject& subject);
void describe_gate(const Subject& subject);
void describe_utilization(const Subject& subject);
void describe_wait_line(const Subject& subject);
void describe_idempotency_record(const Subject& subject);
/// A constant has no state.
void describe_constant(const Subject& subject);

}  // namespace sluice::tool
