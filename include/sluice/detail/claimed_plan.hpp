// The plans of a wait, and whose each part of an answer is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "sluice/detail/claimed_limit.hpp"

namespace sluice::detail {

template <class T, std::size_t size>
class UninitializedArray;

/// What one wait asks the store of its limits. One request at a time, by whose thread it is used.
class ClaimedPlan {
 public:
  /// REQUIRES: `limits` have at most Plan::max_steps steps, and outlive this.
  explicit ClaimedPlan(const ClaimedLimits& limits);

  /// There is no room for the question whose turn it is.
  [[nodiscard]] bool is_full() const noexcept { return size_ == Plan::max_steps; }

  /// For the steps of one request, on the stack of who sends it: a store may look at them until it
  /// returns, though the answer has led to the next request.
  using Room = UninitializedArray<Step, Plan::max_steps + 1>;
  /// What some limits must know before they are asked, if anything. If there is an error, `limit`
  /// is at fault.
  [[nodiscard]] std::span<const Step> preparations(Room& room, std::error_code& error,
                                                   std::size_t& limit) noexcept;
  /// What asks all limits, and perhaps whose turn it is.
  [[nodiscard]] std::span<const Step> questions(Room& room,
                                                const std::optional<Step>& turn) noexcept;

  // Of the answer to the latest of these:

  /// Whose step it is; of the turn, none.
  [[nodiscard]] std::size_t limit_of(std::size_t step) const noexcept {
    return step < parts_.size() ? parts_[step].limit : 0;
  }
  /// Calls `hear(limit, own)` with the answer to each step that decides.
  template <class Hear>
  void for_each_limit(const Outcome& outcome, const Hear& hear) const {
    auto output = outcome.output;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      Outcome own{{}, outcome.decision, {}, output.first(std::min(part.words, output.size()))};
      output = output.subspan(own.output.size());
      if (!part.decides) continue;
      if (i < outcome.steps.size()) own.decision = outcome.steps[i];
      own.decision.step = static_cast<std::uint16_t>(part.limit);
      own.steps = {&own.decision, 1};
      hear(part.limit, own);
    }
  }
  /// The same outcome, as if the plan had one step for each limit: its decision is that of the
  /// limits, granted if the turn was as well. `each`: one for each limit.
  [[nodiscard]] Outcome by_limits(const Outcome& outcome, std::span<Decision> each) const noexcept;

 private:
  struct Part {
    std::size_t limit;
    std::size_t words;  // of output
    bool decides;
  };
  void add(const Step& step, std::size_t limit, bool decides, Room& room) noexcept;

  const ClaimedLimits& limits_;
  std::size_t size_ = 0;
  std::vector<Part> parts_;  // with room for all
};

}  // namespace sluice::detail
