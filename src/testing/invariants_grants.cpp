// Checkers of grants: intervals, windows, gaps, and the numbers in answers.
#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "src/testing/grants.hpp"

namespace sluice::testing::detail {

History grants_of(std::span<const Event> history) {
  History grants;
  for (const Event& event : history) {
    if (event.allowed && event.cost > 0) grants.push_back(event);
  }
  const auto earlier = [](const Event& a, const Event& b) { return a.effective < b.effective; };
  if (!std::ranges::is_sorted(grants, earlier)) std::ranges::stable_sort(grants, earlier);
  return grants;
}

}  // namespace sluice::testing::detail

namespace sluice::testing {
namespace {

using detail::Exact;
using detail::grants_of;
using detail::text;

}  // namespace

Event note(const Decision& d, Word cost, std::size_t caller) {
  const Span ahead = d.allowed ? d.retry_after : Span{0};
  return {d.at, cost, d.allowed, d.at + ahead, d.retry_after, d.remaining, caller};
}

/// With S(i) the units before grant i: for i <= j it must hold that
/// S(j + 1) - S(i) <= burst + rate * (t(j) - t(i)); all times the period, so that it is exact.
Checked check_rate(std::span<const Event> history, const RateBound& bound) {
  const Word period = bound.period.count();
  Exact sum = 0;
  Exact least = 0;  // of S(i) * period - units * t(i), for i up to j
  Exact before = 0;
  const Event* first = nullptr;
  for (const History grants = grants_of(history); const Event& grant : grants) {
    const Exact flow = static_cast<Exact>(bound.units) * to_word(grant.effective);
    if (first == nullptr || sum * period - flow < least) {
      least = sum * period - flow;
      before = sum;
      first = &grant;
    }
    sum += grant.cost;
    const Exact over = sum * period - flow - least - static_cast<Exact>(bound.burst) * period;
    if (over <= 0) continue;
    const Exact excess = (over + period - 1) / period;
    return Breach{"from " + text(first->effective) + " to " + text(grant.effective) + " " +
                      text(sum - before) + " units were granted, " + text(excess) +
                      " more than fit",
                  static_cast<Word>(excess)};
  }
  return {};
}

Checked check_window(std::span<const Event> history, Span length, Word limit) {
  Exact sum = 0;
  const History grants = grants_of(history);
  for (std::size_t first = 0, last = 0; last < grants.size(); ++last) {
    sum += grants[last].cost;
    while (grants[first].effective <= grants[last].effective - length) sum -= grants[first++].cost;
    if (sum <= limit) continue;
    return Breach{"in the window of " + text(length) + " that ends with " +
                      text(grants[last].effective) + " " + text(sum) +
                      " units were granted, the limit is " + text(limit),
                  static_cast<Word>(sum - limit)};
  }
  return {};
}

Checked check_aligned(std::span<const Event> history, std::span<const Time> edges, Word limit) {
  Exact sum = 0;
  std::size_t next = 0;  // the edge after the window
  for (const History grants = grants_of(history); const Event& grant : grants) {
    while (next < edges.size() && edges[next] <= grant.effective) {
      ++next;
      sum = 0;
    }
    if (next == 0 || next == edges.size()) {
      return Breach{"a grant at " + text(grant.effective) + " lies in no window", grant.cost};
    }
    sum += grant.cost;
    if (sum <= limit) continue;
    return Breach{"in the window from " + text(edges[next - 1]) + " to " + text(edges[next]) + " " +
                      text(sum) + " units were granted, the limit is " + text(limit),
                  static_cast<Word>(sum - limit)};
  }
  return {};
}

Checked check_gaps(std::span<const Event> history, Span gap) {
  const Event* before = nullptr;
  for (const History grants = grants_of(history); const Event& grant : grants) {
    if (before != nullptr && grant.effective - before->effective < gap) {
      const Span apart = grant.effective - before->effective;
      return Breach{"grants at " + text(before->effective) + " and " + text(grant.effective) +
                        " are " + text(apart) + " apart, less than " + text(gap),
                    (gap - apart).count()};
    }
    before = &grant;
  }
  return {};
}

Checked check_refusals(std::span<const Looked> history) {
  for (const Looked& looked : history) {
    if (looked.answer.allowed || looked.before == looked.after) continue;
    return Breach{"the refusal at " + text(looked.answer.at) + " changed the key: before it " +
                      text(looked.before.remaining) + " remained, to be reset after " +
                      text(looked.before.reset_after) + ", after it " +
                      text(looked.after.remaining) + ", after " + text(looked.after.reset_after),
                  std::abs(looked.before.remaining - looked.after.remaining)};
  }
  return {};
}

Checked check_answers(std::span<const Matched> history) {
  std::unordered_set<std::uint64_t> seen;
  for (const Matched& matched : history) {
    if (matched.asked != matched.answered) {
      return Breach{"request " + std::to_string(matched.asked) + " got the answer of " +
                    std::to_string(matched.answered)};
    }
    if (!seen.insert(matched.asked).second) {
      return Breach{"request " + std::to_string(matched.asked) + " was answered twice"};
    }
  }
  return {};
}

Checked check_remaining(std::span<const Event> history, Word limit) {
  for (const Event& event : history) {
    if (event.remaining >= 0 && event.remaining <= limit) continue;
    return Breach{"at " + text(event.at) + " " + text(event.remaining) + " of " + text(limit) +
                      " were said to remain",
                  event.remaining < 0 ? -event.remaining : event.remaining - limit};
  }
  return {};
}

Checked check_same_grants(std::span<const Event> a, std::span<const Event> b) {
  const History left = grants_of(a);
  const History right = grants_of(b);
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const auto tell = [i](const History& grants) {
      return i < grants.size() ? text(grants[i].cost) + " units at " + text(grants[i].effective)
                               : std::string("nothing");
    };
    const bool same = i < left.size() && i < right.size() && left[i].cost == right[i].cost &&
                      left[i].effective == right[i].effective;
    if (same) continue;
    return Breach{"grant " + std::to_string(i) + " is " + tell(left) + " in one history and " +
                  tell(right) + " in the other"};
  }
  return {};
}

}  // namespace sluice::testing
