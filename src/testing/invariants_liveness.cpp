// Checkers of liveness: exact hints, and no idling while a caller waits.
#include <cstdlib>
#include <map>

#include "src/testing/grants.hpp"

namespace sluice::testing {
namespace {

using detail::Exact;
using detail::text;

/// The hint for a request of this cost, valid until something is allowed.
using Promises = std::map<Word, Time>;

Checked find_broken_promise(const Event& event, Time due) {
  const std::string who = "a request for " + text(event.cost) + " at " + text(event.at);
  if (event.allowed && event.at < due) {
    return Breach{who + " passed, the hint was " + text(due), (due - event.at).count()};
  }
  if (!event.allowed && event.at >= due) {
    return Breach{who + " was refused, the hint was " + text(due),
                  (event.at + event.retry_after - due).count()};
  }
  if (!event.allowed && event.at + event.retry_after != due) {
    const Span moved = event.at + event.retry_after - due;
    return Breach{
        who + " was told " + text(event.at + event.retry_after) + ", the hint was " + text(due),
        std::abs(moved.count())};
  }
  return {};
}

}  // namespace

Checked check_hints(std::span<const Event> history, std::size_t* proven) {
  Promises promises;
  for (const Event& event : history) {
    if (const auto found = promises.find(event.cost); found != promises.end()) {
      const Time due = found->second;
      if (const Checked broken = find_broken_promise(event, due)) return broken;
      const bool at_edge = event.at == due || event.at == due - Span{1};
      if (proven != nullptr && at_edge) ++*proven;
    }
    if (event.allowed) {
      promises.clear();
      continue;
    }
    if (event.retry_after <= Span{0}) {
      return Breach{"a request for " + text(event.cost) + " was refused at " + text(event.at) +
                    " without a hint"};
    }
    promises.insert_or_assign(event.cost, event.at + event.retry_after);
  }
  return {};
}

/// While callers wait, with G(t) the units granted before t:
/// for s <= t it must hold that G(t) - G(s) >= rate * (t - s) - burst; all times the period.
Checked check_work_conserving(std::span<const Event> history, const RateBound& bound) {
  const Word period = bound.period.count();
  std::map<std::size_t, Time> waiting;  // the callers, and when each began to wait
  Exact granted = 0;
  Exact most = 0;  // of granted * period - units * s, for s since a caller waits
  Time from{};
  for (const Event& event : history) {
    const auto balance = [&] {
      return granted * period - static_cast<Exact>(bound.units) * to_word(event.at);
    };
    if (!waiting.empty()) {
      const Exact idle = most - balance() - static_cast<Exact>(bound.burst) * period;
      if (idle >= period) {  // a whole unit, since fractions of one cannot be granted
        return Breach{"callers waited from " + text(from) + " to " + text(event.at) + ", and " +
                          text(idle / period) + " units fewer were granted than there were",
                      static_cast<Word>(idle / period)};
      }
    }
    if (event.allowed) {
      granted += event.cost;
      waiting.erase(event.caller);
    } else {
      if (waiting.empty()) most = balance();
      waiting.try_emplace(event.caller, event.at);
    }
    if (!waiting.empty() && balance() >= most) {
      most = balance();
      from = event.at;
    }
  }
  return {};
}

}  // namespace sluice::testing
