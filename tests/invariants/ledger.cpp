// The sums of intervals, by brute force: histories are a few hundred entries long.
#include "tests/invariants/ledger.hpp"

#include <algorithm>

namespace sluice::test {

std::size_t Ledger::charge(Time decided, Time at, Word units) {
  entries_.push_back({decided, at, units * whole});
  return entries_.size() - 1;
}

void Ledger::refund(std::size_t entry, Word millionths, Time at) {
  entries_[entry].millionths -= std::min(millionths, entries_[entry].millionths);
  entries_[entry].at = at;
}

void Ledger::allow(Time decided, Time until, Word millionths) {
  allowances_.push_back({decided, until, millionths});
}

bool Ledger::promised(Time change, Time now) const {
  return std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.decided <= change && entry.at > now; });
}

Time Ledger::latest(Time now) const {
  for (const Entry& entry : entries_) now = std::max(now, entry.at);
  return now;
}

testing::Checked Ledger::check(Span length,
                               const std::function<Exact(const Interval&)>& admits) const {
  std::vector<Entry> entries;
  std::ranges::copy_if(entries_, std::back_inserter(entries),
                       [](const Entry& entry) { return entry.millionths > 0; });
  std::ranges::stable_sort(entries, {}, &Entry::at);
  for (std::size_t first = 0; first < entries.size(); ++first) {
    Interval interval{entries[first].decided, entries[first].at, {}};
    Exact sum = 0;
    for (std::size_t last = first; last < entries.size(); ++last) {
      interval.to = entries[last].at;
      if (interval.to - interval.from >= length) break;
      interval.decided = std::min(interval.decided, entries[last].decided);
      sum += entries[last].millionths;
      Exact most = admits(interval);
      if (sum <= most) continue;
      for (const Allowance& allowance : allowances_) {
        if (allowance.from <= interval.to && allowance.until >= interval.from) {
          most += allowance.millionths;
        }
      }
      if (sum <= most) continue;
      using testing::detail::text;
      return testing::Breach{"from " + text(interval.from) + " to " + text(interval.to) + " " +
                                 text(sum) + " millionths were granted, " + text(most) +
                                 " are allowed",
                             static_cast<Word>(sum - most)};
    }
  }
  return {};
}

}  // namespace sluice::test
