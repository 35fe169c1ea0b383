// A book of states for tests without a server: it decides steps by their kernels. Threading: none.
#pragma once

#include <map>
#include <string>

#include "sluice/plan.hpp"
#include "tool/describe.hpp"

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

  [[nodiscard]] tool::StoredState& at(const std::string& key) { return states_.at(key); }
  [[nodiscard]] tool::Description describe(const std::string& key,
                                           const tool::Given& given = {}) const {
    return tool::describe(*tool::KeyName::parse(key), states_.at(key), given, now);
  }

 private:
  std::map<std::string, tool::StoredState> states_;
};

/// The value of a field; fails if there is none.
template <class T>
T field(const tool::Fields& fields, std::string_view name) {
  for (const tool::Field& each : fields) {
    if (each.name == name) return std::get<T>(each.value);
  }
  throw std::runtime_error("no field " + std::string(name));
}
inline Word moment_of(const tool::Description& d, std::string_view name) {
  return field<tool::Moment>(d.fields, name).us;
}
inline bool has_field(const tool::Description& d, std::string_view name) {
  for (const tool::Field& each : d.fields) {
    if (each.name == name) return true;
  }
  return false;
}

}  // namespace sluice::test
