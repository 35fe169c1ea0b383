// What threads asked of a store and heard, and whether one order of the calls explains it: each
// call's answer is then what the kernels answer, run one after the other in that order, and a call
// that ended before another began comes before it (Wing and Gong's search, with Lowe's memory of
// what was tried). Threading: a History may be written by several threads, each its own lane.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "sluice/sluice.hpp"

namespace sluice::test {

/// One call and its answer.
struct AskedPlan {
  std::vector<Step> steps;
  std::optional<RequestId> id;
  std::uint64_t begin = 0;  ///< instants of the history, not of the store
  std::uint64_t end = 0;
  std::error_code error;
  std::array<Decision, 4> each;
  std::array<Word, 4 * max_output> output{};
  Time at{};

  [[nodiscard]] Plan plan() const {
    const Plan whole{std::span<const Step>(steps)};
    return id ? whole.idempotent(*id) : whole;
  }
  /// Asks the store, one step without output words as a limiter does; `tick` gives the instants of
  /// the history.
  template <class Tick>
  void ask(Store& store, const Tick& tick) {
    begin = tick();
    if (steps.size() == 1 && !id && steps.front().operation->output == 0) {
      each[0] = decide(store, steps.front(), error);
      at = each[0].at;
    } else {
      at = decide(store, plan(), error, std::span(each).first(steps.size()), output).at;
    }
    end = tick();
  }
};

/// The sequential specification: the kernels over a map of states.
class Model {
 public:
  /// True if the call's answer is what the rules say of these states; they are changed then.
  bool explains(const AskedPlan& call);
  /// The states as text, to tell them apart.
  [[nodiscard]] std::string text() const;

 private:
  struct Answer {
    bool allowed = false;
    std::error_code error;
    std::vector<Decision> each;
    std::vector<Word> output;
    Time at{};
  };
  Answer decide(const AskedPlan& call);

  std::map<std::string, std::vector<Word>> states_;
  std::map<std::array<std::uint64_t, 2>, Answer> records_;
};

/// True if some order of the calls explains them all. REQUIRES: at most 64 calls.
[[nodiscard]] bool linearizes(const std::vector<AskedPlan>& calls);

/// The calls, one a line, for a failure's message.
[[nodiscard]] std::string text(const std::vector<AskedPlan>& calls);

}  // namespace sluice::test
