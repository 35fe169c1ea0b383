// A state of two words and the rows that decide about it, as tables of moments.
// Threading: one thread.
#pragma once

#include <ostream>
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

/// One request.
struct Ask {
  const Operation* row;
  Arguments args;
};

/// The state of one key, from its first request on.
class Kernel {
 public:
  /// Instants count from `origin`.
  explicit Kernel(Word origin, StateWords words = {}) : origin_(origin), words_(words) {}

  /// Asks as a store does; fails the test if the rule breaks the rules of rules.
  Verdict ask(Span at, const Ask& ask) {
    Effects effects;
    const Verdict verdict = run(*ask.row, words_, {ask.args, {}}, origin_ + at.count(), effects);
    if (effects.changes()) {
      CHECK(verdict.status == Verdict::allowed);
      CHECK(ask.row->writes);
      effects.make(words_);
    }
    for (const Word word : words_) CHECK((!effects.changes() || (word >= 0 && word <= word_limit)));
    CHECK((verdict.status < 0) == (verdict.status != 0 && verdict.status != 1));
    return verdict;
  }
  [[nodiscard]] const StateWords& words() const noexcept { return words_; }

 private:
  Word origin_;
  StateWords words_;
};

/// At this instant, this request, this answer.
struct Moment {
  Span at;
  Ask ask;
  Verdict answer;
};

inline void check_moments(Word origin, const std::vector<Moment>& table) {
  Kernel kernel(origin);
  for (std::size_t i = 0; i < table.size(); ++i) {
    INFO("moment " << i << ", at " << table[i].at.count() << " us, " << table[i].ask.row->name);
    CHECK(kernel.ask(table[i].at, table[i].ask) == table[i].answer);
  }
}

}  // namespace sluice::test
