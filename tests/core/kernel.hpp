// The state of one key and the rows that decide about it, as tables of moments. Threading: one
// thread.
#pragma once

#include <ostream>
#include <utility>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "tests/catch.hpp"

namespace sluice {
inline std::ostream& operator<<(std::ostream& out, const Verdict& v) {
  return out << "{status " << v.status << ", remaining " << v.remaining << ", retry_after "
             << v.retry_after << ", reset_after " << v.reset_after << '}';
}
}  // namespace sluice

namespace sluice::test {

/// A midnight, from which most tables count.
inline constexpr Word start = 946'684'800'000'000;

/// One request.
struct Ask {
  const Operation* row;
  Arguments args;
};

using Output = std::vector<Word>;

/// The state of one key and the table of its limiter, from the first request on.
class Kernel {
 public:
  /// Instants count from `origin`.
  explicit Kernel(Word origin = start, std::vector<Word> words_of_table = {})
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
struct Moment {
  Span at;
  Ask ask;
  Verdict answer;
  Output output = {};
};

inline void check_moments(Kernel& kernel, const std::vector<Moment>& moments) {
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const Moment& moment = moments[i];
    INFO("moment " << i << ", at " << moment.at.count() << " us, " << moment.ask.row->name);
    CHECK(kernel.ask(moment.at, moment.ask) == moment.answer);
    if (!moment.output.empty()) CHECK(kernel.output == moment.output);
  }
}
inline void check_moments(Kernel&& kernel, const std::vector<Moment>& moments) {
  check_moments(kernel, moments);
}
/// From a fresh key on.
inline void check_moments(const std::vector<Moment>& moments) { check_moments(Kernel(), moments); }

/// Each of these requests is that error of a fresh key.
inline void check_errors(Errc code, const std::vector<Ask>& asks) {
  for (const Ask& ask : asks) check_moments({{Span{0}, ask, Verdict::failed(code)}});
}

/// These words of a sound state, one at a time, are an error of each request.
using Flaws = std::vector<std::pair<std::size_t, Word>>;
inline void check_corrupt(const Kernel& sound, Span at, const Flaws& flaws,
                          const std::vector<Ask>& asks) {
  for (const auto& [index, value] : flaws) {
    for (const Ask& ask : asks) {
      INFO("word " << index << " is " << value << ", " << ask.row->name);
      Kernel spoilt = sound;
      if (spoilt.state.size() <= index) spoilt.state.resize(index + 1);
      spoilt.state[index] = value;
      CHECK(spoilt.ask(at, ask) == Verdict::failed(Errc::corrupt_state));
    }
  }
}

inline Verdict admitted(Word remaining, Span reset_after, Span wait = {}) {
  return {Verdict::allowed, remaining, wait.count(), reset_after.count()};
}
inline Verdict turned_away(Span retry_after, Span reset_after, Word remaining = 0) {
  return {Verdict::refused, remaining, retry_after.count(), reset_after.count()};
}

}  // namespace sluice::test
