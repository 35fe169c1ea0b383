// The checks of matchers that are not invariants of a history: shares, recovery, operations.
#include "src/testing/trace_checks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "sluice/testing/invariants.hpp"
#include "sluice/testing/text.hpp"
#include "src/core/text.hpp"
#include "src/testing/grants.hpp"
#include "src/testing/trace_events.hpp"
#include "src/testing/trace_line.hpp"

namespace sluice::testing::detail {
namespace {

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

}  // namespace

std::string rounded(double number) {
  return sluice::detail::decimal(std::llround(number * 100), 100);
}
std::string percent(double share) { return rounded(share * 100) + " %"; }

void require_positive(const char* what, Span span) {
  if (span <= Span{0}) {
    throw std::invalid_argument(std::string(what) + " must be 1 us or longer, got " +
                                to_text(span));
  }
}
void require_share(const char* what, double number) {
  constexpr double most = 1e9;
  if (!(number >= 0 && number <= most)) {
    throw std::invalid_argument(std::string(what) + " must lie in [0, 1e9], got " +
                                std::to_string(number));
  }
}

Checked find_unequal_share(const Trace& trace, double tolerance) {
  const bool by_caller =
      std::ranges::any_of(trace.calls, [](const TracedCall& call) { return !call.caller.empty(); });
  std::map<std::string, Exact> granted;
  Exact total = 0;
  for (const TracedCall& call : trace.calls) {
    const auto asked = find_asked(call);
    if (!asked) continue;
    Exact& units = granted[by_caller ? call.caller : key_text(*asked->step)];
    if (call.error || !call.decision.allowed) continue;
    units += asked->cost;
    total += asked->cost;
  }
  if (total == 0) return Breach{"nothing was granted at all", 0};
  const double equal = static_cast<double>(total) / static_cast<double>(granted.size());
  const std::string* worst = nullptr;
  double most = 0;
  for (const auto& [who, units] : granted) {
    const double off = std::abs(static_cast<double>(units) / equal - 1);
    if (worst == nullptr || off > most) {
      most = off;
      worst = &who;
    }
  }
  // A share that differs by exactly the tolerance is accepted, however its division was rounded.
  if (most <= tolerance + 1e-12) return {};
  const Exact units = granted[*worst];
  return Breach{(by_caller ? "caller \"" + *worst + '"' : "key " + *worst) + " was granted " +
                    text(units) + " of " + text(total) + " units, " + percent(most) +
                    (static_cast<double>(units) < equal ? " less" : " more") +
                    " than an equal share among " + std::to_string(granted.size()),
                std::llround(std::abs(static_cast<double>(units) - equal))};
}

Checked find_late_recovery(const Trace& trace, Span span, std::string_view about) {
  bool marked = false;
  for (const Mark& mark : trace.marks) {
    if (mark.text.find(about) == std::string::npos) continue;
    marked = true;
    const TracedCall* first = nullptr;
    const auto at = [](const TracedCall& call) {
      return call.decision.at + call.decision.retry_after;
    };
    for (std::size_t i = mark.before; i < trace.calls.size(); ++i) {
      const TracedCall& call = trace.calls[i];
      if (is_granted(call) && (first == nullptr || at(call) < at(*first))) first = &call;
    }
    const std::string after = "after \"" + mark.text + "\" at " +
                              text(since_start(mark.at, trace)) + " nothing was granted";
    if (first == nullptr) return Breach{after + " any more", 0};
    const Span late = at(*first) - mark.at - span;
    if (late <= Span{0}) continue;
    return Breach{
        after + " until " + text(since_start(at(*first), trace)) + ", " + text(late) + " too late",
        late.count()};
  }
  if (marked) return {};
  return Breach{about.empty() ? "no mark says when there was a fault"
                              : "no mark says \"" + std::string(about) + '"',
                0};
}

Checked find_inexact_hint(const Trace& trace) {
  for (const KeyTrace& one : split_by_key(trace)) {
    for (const auto& [question, history] : hint_histories(one.trace, trace)) {
      if (const Checked broken = check_hints(history)) {
        return Breach{"of " + question + ", " + broken->what, broken->excess};
      }
    }
  }
  return {};
}

Checked find_waste(const Trace& trace, double most) {
  std::size_t grants = 0;
  for (const TracedCall& call : trace.calls) grants += is_granted(call) ? 1U : 0U;
  const std::size_t calls = trace.calls.size();
  const double allowed = most * static_cast<double>(grants);
  if (static_cast<double>(calls) <= allowed) return {};
  const std::string made = plural(calls, "operation") + " made ";
  const Word excess = std::llround(std::ceil(static_cast<double>(calls) - allowed));
  if (grants == 0) return Breach{made + "no grant", excess};
  const double each = static_cast<double>(calls) / static_cast<double>(grants);
  return Breach{made + plural(grants, "grant") + ", " + rounded(each) + " each", excess};
}

Checked find_failure(const Trace& trace) {
  std::size_t failed = 0;
  const TracedCall* first = nullptr;
  for (const TracedCall& call : trace.calls) {
    if (!call.error) continue;
    if (failed++ == 0) first = &call;
  }
  if (first == nullptr) return {};
  return Breach{plural(failed, "call") + " failed, the first at " +
                    text(since_start(first->asked, trace)) + ": " +
                    question_text(first->steps, first->id) + " -> " + answer_text(*first),
                static_cast<Word>(failed)};
}

}  // namespace sluice::testing::detail
