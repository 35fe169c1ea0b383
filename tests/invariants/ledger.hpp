// What a key was charged, by its times: grants, less what was given back since, and what was spent
// beyond or given by hand. The judge of histories in which not only is asked.
// Threading: one thread.
#pragma once

#include <functional>
#include <vector>

#include "sluice/testing/invariants.hpp"

namespace sluice::test {

class Ledger {
 public:
  using Exact = testing::detail::Exact;
  static constexpr Word whole = 1'000'000;  // units are counted in millionths

  /// `units` that count from `at` on, promised at `decided`. Answers which entry they are.
  std::size_t charge(Time decided, Time at, Word units);
  /// So many millionths of an entry never were; what is left of it counts from `at` on.
  void refund(std::size_t entry, Word millionths, Time at);
  /// Millionths that somebody was given at `decided`: any interval that reaches into the time
  /// from then to `until` may hold as much more.
  void allow(Time decided, Time until, Word millionths);
  /// True if something that was decided before `change` counts after `now`.
  [[nodiscard]] bool promised(Time change, Time now) const;
  /// When the last entry counts, if any lies ahead of `now`; else `now`.
  [[nodiscard]] Time latest(Time now) const;

  /// An interval between two entries: when the first of its grants was decided, and its ends.
  struct Interval {
    Time decided;
    Time from;
    Time to;
  };
  /// Looks at every interval shorter than `length`: the millionths in it must not be more than
  /// `admits` says. O(n^2) with n entries.
  [[nodiscard]] testing::Checked check(Span length,
                                       const std::function<Exact(const Interval&)>& admits) const;

 private:
  struct Entry {
    Time decided;
    Time at;
    Word millionths;
  };
  struct Allowance {
    Time from;
    Time until;
    Word millionths;
  };

  std::vector<Entry> entries_;
  std::vector<Allowance> allowances_;
};

}  // namespace sluice::test
