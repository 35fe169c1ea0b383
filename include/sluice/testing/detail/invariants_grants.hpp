// Checkers of grants: intervals, windows, gaps, and the numbers in answers. Threading: pure.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <unordered_set>

#include "sluice/testing/history.hpp"
#include "sluice/testing/text.hpp"

namespace sluice::testing::detail {

__extension__ typedef __int128 Exact;  // products of units and microseconds

inline std::string text(Word number) { return std::to_string(number); }
inline std::string text(Exact number) { return std::to_string(static_cast<Word>(number)); }
inline std::string text(Time time) { return to_text(time); }
inline std::string text(Span span) { return to_text(span); }

/// The grants that cost something, in the order in which they take effect.
inline History grants_of(std::span<const Event> history) {
  History grants;
  for (const Event& event : history) {
    if (event.allowed && event.cost > 0) grants.push_back(event);
  }
  const auto earlier = [](const Event& a, const Event& b) { return a.effective < b.effective; };
  if (!std::ranges::is_sorted(grants, earlier)) std::ranges::stable_sort(grants, earlier);
  return grants;
}

/// With S(i) the units before grant i: for i <= j it must hold that
/// S(j + 1) - S(i) <= burst + rate * (t(j) - t(i)); all times the period, so that it is exact.
inline Checked find_rate_breach(std::span<const Event> history, Word burst, Word units,
                                Word period) {
  Exact sum = 0;
  Exact least = 0;  // of S(i) * period - units * t(i), for i up to j
  Exact before = 0;
  const Event* first = nullptr;
  for (const History grants = grants_of(history); const Event& grant : grants) {
    const Exact flow = static_cast<Exact>(units) * to_word(grant.effective);
    if (first == nullptr || sum * period - flow < least) {
      least = sum * period - flow;
      before = sum;
      first = &grant;
    }
    sum += grant.cost;
    const Exact over = sum * period - flow - least - static_cast<Exact>(burst) * period;
    if (over <= 0) continue;
    const Exact excess = (over + period - 1) / period;
    return Breach{"from " + text(first->effective) + " to " + text(grant.effective) + " " +
                      text(sum - before) + " units were granted, " + text(excess) +
                      " more than fit",
                  static_cast<Word>(excess)};
  }
  return {};
}

inline Checked find_window_breach(std::span<const Event> history, Span length, Word limit) {
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

inline Checked find_aligned_breach(std::span<const Event> history, std::span<const Time> edges,
                                   Word limit) {
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

inline Checked find_gap_breach(std::span<const Event> history, Span gap) {
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

inline Checked find_refusal_breach(std::span<const Looked> history) {
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

inline Checked find_answer_breach(std::span<const Matched> history) {
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

inline Checked find_remaining_breach(std::span<const Event> history, Word limit) {
  for (const Event& event : history) {
    if (event.remaining >= 0 && event.remaining <= limit) continue;
    return Breach{"at " + text(event.at) + " " + text(event.remaining) + " of " + text(limit) +
                      " were said to remain",
                  event.remaining < 0 ? -event.remaining : event.remaining - limit};
  }
  return {};
}

}  // namespace sluice::testing::detail
