// Checkers of grants while the quota changes: each interval is checked by the quotas that are in
// force in it.
#include <algorithm>
#include <iterator>

#include "src/testing/grants.hpp"

namespace sluice::testing::detail {
namespace {

/// The end of the i-th quota.
template <class Quota>
Time end_of(std::span<const Quota> quotas, std::size_t i) {
  return i + 1 < quotas.size() ? quotas[i + 1].from : to_time(word_limit);
}

}  // namespace

Word most_within(std::span<const WindowFrom> quotas, Time first, Time last, Span length) {
  const auto is_in_force = [&](std::size_t i) {
    return quotas[i].from <= last && end_of(quotas, i) >= first;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    if (is_in_force(i)) ++count;
  }
  Word most = 0;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    if (!is_in_force(i)) continue;
    const Word begun = (length.count() - 1) / quotas[i].length.count() + 1 + (count > 2 ? 1 : 0);
    const Exact admits = Exact{begun} * quotas[i].limit;
    most = static_cast<Word>(std::max(Exact{most}, std::min(admits, Exact{word_limit})));
  }
  return most;
}

}  // namespace sluice::testing::detail

namespace sluice::testing {
namespace {

using detail::Exact;
using detail::grants_of;
using detail::most_within;
using detail::text;

/// The grants between two times. A grant at one of them may be under either quota, so that it
/// counts only where both do.
History grants_between(const History& grants, Time from, Time until) {
  History part;
  std::ranges::copy_if(grants, std::back_inserter(part), [&](const Event& grant) {
    return grant.effective > from && grant.effective < until;
  });
  return part;
}

}  // namespace

Checked check_changing_rate(std::span<const Event> history, std::span<const RateFrom> quotas) {
  const History grants = grants_of(history);
  for (std::size_t first = 0; first < quotas.size(); ++first) {
    RateBound most = quotas[first].bound;
    for (std::size_t last = first; last < quotas.size(); ++last) {
      const RateBound& bound = quotas[last].bound;
      most.burst = std::max(most.burst, bound.burst);
      if (Exact{bound.units} * most.period.count() > Exact{most.units} * bound.period.count()) {
        most.units = bound.units;
        most.period = bound.period;
      }
      const Time from = first == 0 ? Time::min() : quotas[first].from;
      const History part = grants_between(grants, from, detail::end_of(quotas, last));
      const Checked found = check_rate(part, most);
      if (found) return found;
    }
  }
  return {};
}

Checked check_changing_window(std::span<const Event> history, std::span<const WindowFrom> quotas) {
  const History grants = grants_of(history);
  for (std::size_t q = 0; q < quotas.size(); ++q) {
    const Span length = quotas[q].length;
    Exact sum = 0;
    for (std::size_t first = 0, last = 0; last < grants.size(); ++last) {
      sum += grants[last].cost;
      while (grants[first].effective <= grants[last].effective - length) {
        sum -= grants[first++].cost;
      }
      const Time begin = grants[first].effective;
      const Time end = grants[last].effective;
      if (quotas[q].from > end || detail::end_of(quotas, q) < begin) continue;
      const Word most = most_within(quotas, begin, end, length);
      if (sum <= most) continue;
      return Breach{"from " + text(begin) + " to " + text(end) + ", within " + text(length) + ", " +
                        text(sum) + " units were granted, the quotas in force allow " + text(most),
                    static_cast<Word>(sum - most)};
    }
  }
  return {};
}

}  // namespace sluice::testing
