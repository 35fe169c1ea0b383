// A state of any length and the rows that decide about it, as tables of moments with output words.
// Threading: one thread.
#pragma once

#include <utility>
#include <vector>

#include "tests/core/kernel.hpp"

namespace sluice::test {

using Output = std::vector<Word>;

/// The state of one key and the table of its limiter, from the first request on.
class LongKernel {
 public:
  /// Instants count from `origin`.
  explicit LongKernel(Word origin, std::vector<Word> words_of_table = {})
      : table(std::move(words_of_table)), origin_(origin) {}

  /// Asks as a store does; fails the test if the rule breaks the rules of rules.
  Verdict ask(Span at, const Ask& ask) {
    Effects effects;
    const Verdict verdict = run(*ask.row, state, {ask.args, table}, origin_ + at.count(), effects);
    if (effects.changes()) {
      CHECK(verdict.status == Verdict::allowed);
      CHECK(ask.row->writes);
      if (state.size() < effects.extent()) state.resize(effects.extent());
      effects.make(state);
    }
    output.assign(effects.output().begin(), effects.output().end());
    CHECK(output.size() == output_count(*ask.row, table.size()));
    return verdict;
  }

  std::vector<Word> table;
  std::vector<Word> state = std::vector<Word>(cell_words);
  Output output;  // of the last answer

 private:
  Word origin_;
};

/// At this instant, this request, this answer. No output words: they are not looked at.
struct LongMoment {
  Span at;
  Ask ask;
  Verdict answer;
  Output output = {};
};

inline void check_moments(LongKernel& kernel, const std::vector<LongMoment>& moments) {
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const LongMoment& moment = moments[i];
    INFO("moment " << i << ", at " << moment.at.count() << " us, " << moment.ask.row->name);
    CHECK(kernel.ask(moment.at, moment.ask) == moment.answer);
    if (!moment.output.empty()) CHECK(kernel.output == moment.output);
  }
}
inline void check_moments(LongKernel&& kernel, const std::vector<LongMoment>& moments) {
  check_moments(kernel, moments);
}

inline Verdict admitted(Word remaining, Span reset_after, Span wait = {}) {
  return {Verdict::allowed, remaining, wait.count(), reset_after.count()};
}
inline Verdict turned_away(Span retry_after, Span reset_after, Word remaining = 0) {
  return {Verdict::refused, remaining, retry_after.count(), reset_after.count()};
}

}  // namespace sluice::test
