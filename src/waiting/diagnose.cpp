#include "sluice/calls/diagnose.hpp"

#include <algorithm>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

#include "sluice/calls/call.hpp"
#include "src/core/text.hpp"
#include "src/waiting/tell_of_wait.hpp"
#include "src/waiting/turn_in_line.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice {
namespace detail {

void WaitQueues::add_waiting(std::vector<WaitingCall>& calls) const {
  const std::lock_guard lock(mutex_);
  if (!home_.is_here()) return;
  for (const auto& [key, queue] : queues_) add_waiting(calls, queue);
}

void WaitQueues::add_waiting(std::vector<WaitingCall>& calls, const std::string& key) const {
  const std::lock_guard lock(mutex_);
  if (!home_.is_here()) return;
  const auto found = queues_.find(key);
  if (found != queues_.end()) add_waiting(calls, found->second);
}

/// Those that keep a turn here, and wait elsewhere, are only ahead of others.
void WaitQueues::add_waiting(std::vector<WaitingCall>& calls, const WaitQueue& queue) {
  std::size_t ahead = 0;
  for (const Line::Turn& turn : queue.line.order()) {
    const Waiter& waiter = *queue.waiters.find(turn.place.number)->second;
    const std::size_t before = ahead++;
    if (waiter.home().queue != &queue) continue;
    const auto [limiter, key] = names_of(waiter.limit());
    WaitingCall& call = calls.emplace_back(WaitingCall{.limiter = std::string(limiter),
                                                       .key = std::string(key),
                                                       .cost = waiter.home().units,
                                                       .priority = waiter.caller_.priority,
                                                       .flow = waiter.caller_.flow,
                                                       .at = waiter.clock_.now(),
                                                       .ahead = before,
                                                       .is_asking = waiter.is_at_store()});
    call.waited = std::max(Span{0}, call.at - to_time(waiter.arrival_.at));
    if (waiter.turn_) call.ahead_elsewhere = waiter.turn_->ticket()->others().units_ahead();
    if (!call.is_asking) call.at_least = known_wait(queue, turn, call.at);
  }
}

/// How long a call waits at least, if that is known; what is decided without the store is not.
std::optional<Span> WaitQueues::known_wait(const WaitQueue& queue, const Line::Turn& turn,
                                           Time now) {
  if (!first_sleeps(queue) || is_degraded(queue.first()->refusal_.source)) return std::nullopt;
  const Waiter& first = *queue.first();
  const Time known = std::max(now, first.earliest_);
  const bool is_first = turn.place == WaitQueue::place_of(first);
  const auto least = is_first ? known - now : least_wait(queue, turn.place, turn.before);
  // The first may have been told that before another call was granted.
  const Span more = std::max(Span{0}, first.pause_end(now) - known);
  return least && *least + more > Span{0} ? std::optional(*least + more) : std::nullopt;
}

}  // namespace detail

namespace {

/// Those of one key stay in order.
std::vector<WaitingCall> by_key(std::vector<WaitingCall> calls) {
  const auto names = [](const WaitingCall& call) { return std::tie(call.limiter, call.key); };
  std::stable_sort(calls.begin(), calls.end(),
                   [&](const WaitingCall& a, const WaitingCall& b) { return names(a) < names(b); });
  return calls;
}

/// As in the rendered key, since a client may choose the bytes: no line of a log is forged.
std::string printable(const std::string& text) {
  const std::string rendered = render(Key(text, "n"));
  return rendered.substr(1, rendered.rfind('}') - 1);
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

}  // namespace

std::vector<WaitingCall> diagnose(const Waitable& limiter) {
  std::vector<WaitingCall> calls;
  limiter.queues()->add_waiting(calls);
  return by_key(std::move(calls));
}

std::vector<WaitingCall> diagnose(const Call& call) {
  std::vector<WaitingCall> calls;
  std::set<std::pair<const detail::WaitQueues*, std::string>> seen;
  for (std::size_t i = 0; i < call.alternatives().size(); ++i) {
    for (const Claim& claim : call.alternatives().claims(i)) {
      const auto& queues = claim.limit().queues();
      const std::string key = detail::queue_key(claim.limit().key());
      if (seen.emplace(queues.get(), key).second) queues->add_waiting(calls, key);
    }
  }
  return by_key(std::move(calls));
}

std::string to_string(const WaitingCall& call) {
  std::string text = printable(call.limiter) + " of " + printable(call.key);
  text += ": waiting " + detail::text_of(call.waited);
  text += " for " + counted(static_cast<std::size_t>(call.cost), "unit");
  if (call.ahead > 0) text += ", behind " + counted(call.ahead, "call");
  if (call.ahead_elsewhere > 0) {
    text += ", behind " + counted(static_cast<std::size_t>(call.ahead_elsewhere), "unit") +
            " of other processes";
  }
  if (call.at_least) text += ", at least " + detail::text_of(*call.at_least) + " more";
  if (call.priority != 0) text += ", priority " + std::to_string(call.priority);
  if (!call.flow.empty()) text += ", flow " + printable(call.flow);
  if (call.is_asking) text += ", the store is asked";
  return text;
}

std::ostream& operator<<(std::ostream& out, const WaitingCall& call) {
  return out << to_string(call);
}

}  // namespace sluice
