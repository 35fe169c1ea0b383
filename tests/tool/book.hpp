// A book of states for tests without a server: it decides steps by their kernels. Threading: none.
#pragma once

#include <map>
#include <string>

#include "sluice/error.hpp"
#include "sluice/plan.hpp"
#include "tool/describe.hpp"
#include "tool/output.hpp"

namespace sluice::test {

class Book {
 public:
  Word now = 1'800'000'000'000'000;

  Verdict decide(const Step& step) {
    tool::StoredState& state = states_.try_emplace(render(step.key)).first->second;
    state.kind = step.operation->kind;
    if (is_cell(state.kind)) state.words.resize(cell_words);
    Effects effects;
    const Verdict verdict =
        run(*step.operation, state.words, {step.args, step.table}, now, effects);
    if (verdict.status == Verdict::allowed && effects.changes()) {
      state.words.resize(std::max(state.words.size(), effects.extent()));
      effects.make(state.words);
    }
    return verdict;
  }

  [[nodiscard]] tool::Description describe(const std::string& key,
                                           const tool::Given& given = {}) const {
    return tool::describe(*tool::KeyName::parse(key), states_.at(key), given, now);
  }
  [[nodiscard]] std::string told(const std::string& key, const tool::Given& given = {}) const;

 private:
  std::map<std::string, tool::StoredState> states_;
};

/// What is told of a state, "3 of 5 used; used 3, remaining 2; granted", and its rows on lines of
/// their own.
inline std::string told(const tool::Description& d, Word now) {
  std::string text = d.summary;
  if (!d.fields.empty()) text += "; " + tool::text_of(d.fields, now);
  if (d.verdict) {
    const Word status = d.verdict->status;
    text += status == Verdict::allowed ? "; granted"
            : status == Verdict::refused
                ? "; refused"
                : "; " + make_error_code(static_cast<Errc>(-status)).message();
  }
  for (const tool::Fields& row : d.rows) text += "\n" + tool::text_of(row, now);
  return text;
}
inline std::string Book::told(const std::string& key, const tool::Given& given) const {
  return test::told(describe(key, given), now);
}

}  // namespace sluice::test
