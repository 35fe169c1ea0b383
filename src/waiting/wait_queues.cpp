// Which waiter asks the store next.
#include "src/waiting/wait_queues.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sluice/limiters/waitable.hpp"
#include "src/waiting/turn_in_line.hpp"

namespace sluice::detail {
namespace {

void require(bool good, const char* what, const std::string& got) {
  if (!good) throw std::invalid_argument(std::string(what) + ", got " + got);
}

void require_valid(const WaitQueueOptions& options) {
  using namespace std::chrono_literals;
  const auto text = [](Span span) { return std::to_string(span.count()) + " us"; };
  require(options.max_waiters >= 1, "WaitQueueOptions::max_waiters must be 1 or more",
          std::to_string(options.max_waiters));
  require(options.lower_share >= 0 && options.lower_share <= 50,
          "WaitQueueOptions::lower_share must be 0 to 50", std::to_string(options.lower_share));
  require(options.recheck >= 1ms && options.recheck <= 24h,
          "WaitQueueOptions::recheck must be 1000 us to 86400000000 us", text(options.recheck));
  require(options.ticket_ttl >= 10ms && options.ticket_ttl <= 1min,
          "WaitQueueOptions::ticket_ttl must be 10000 us to 60000000 us", text(options.ticket_ttl));
  require(options.client >= 0 && options.client <= word_limit,
          "WaitQueueOptions::client must be 0 to 2^52", std::to_string(options.client));
}

}  // namespace

Line::Place WaitQueue::place_of(const QueuedCall& call) noexcept {
  return {call.caller_.priority, call.arrival_.sequence};
}

Line::Request WaitQueue::request_of(const QueuedCall& call, const Place& place) noexcept {
  return {.place = place_of(call),
          .flow = call.caller_.flow,
          .weight = call.caller_.weight,
          .units = place.units,
          .certain = call.limits_.size() > 1 || call.may_leave_ ? 0 : place.units,
          .keeps_turns = call.limits_.size() > 1,
          .has_turn = place.standing.has_waited()};
}

void WaitQueue::insert(const std::shared_ptr<Waiter>& waiter) {
  Place& home = waiter->home();
  if (!home.is_in_line) {
    waiters.emplace(waiter->arrival_.sequence, waiter);
    try {
      line.insert(request_of(*waiter, home));
    } catch (const std::bad_alloc&) {
      waiters.erase(waiter->arrival_.sequence);
      throw;
    }
    home.is_in_line = true;
  }
  waiter->is_at_home_ = true;
  ++homes;
  const bool is_last = line.units_before_last(place_of(*waiter)).has_value();
  unjudged = unjudged == Unjudged::none && is_last ? Unjudged::one : Unjudged::all;
  unjudged_one = waiter->arrival_.sequence;
}

void WaitQueue::erase(const QueuedCall& call, Place& place) noexcept {
  place.is_in_line = false;
  line.erase(place_of(call));
  waiters.erase(call.arrival_.sequence);
}

Waiter* WaitQueue::first() const noexcept {
  const auto place = line.first();
  return place ? waiters.find(place->number)->second.get() : nullptr;
}

Waiter& WaitQueue::take_first() noexcept {
  Waiter& taken = *waiters.find(line.take_first().number)->second;
  taken.stage_ = Waiter::Stage::asking;
  ++in_flight;
  return taken;
}

void WaitQueue::put_back(const QueuedCall& call) noexcept {
  --in_flight;
  line.put_back(place_of(call));
}

void WaitQueue::grant(QueuedCall& call) noexcept {
  --in_flight;
  line.grant(place_of(call));
  waiters.erase(call.arrival_.sequence);
  call.home().is_in_line = false;
}

/// After a grant more requests may be in flight, but no more than what remains.
void WaitQueue::widen(Word remaining) noexcept {
  const auto most = static_cast<std::size_t>(std::clamp<Word>(remaining, 1, word_limit));
  in_flight_limit = std::min({2 * in_flight_limit, max_in_flight, most});
}

/// One whose request is at the store stays, since the answer may be a grant.
std::shared_ptr<Waiter> WaitQueue::victim_of(const std::shared_ptr<Waiter>& newest,
                                             Overflow overflow) const noexcept {
  if (overflow == Overflow::refuse_newest) return newest;
  for (const auto& [number, waiter] : waiters) {
    if (!waiter->is_at_store()) return waiter;
  }
  return newest;
}

Span WaitQueue::sleep_before(const QueuedCall& call) const noexcept {
  const Waiter* const first = this->first();
  if (first == nullptr || first == &call || first->stage_ != Waiter::Stage::sleeping) {
    return Span{0};
  }
  const Time now = first->clock_.now();
  return std::max(now, first->earliest_) - now;
}

void WaitQueue::note_left(const Decision& after, Time now) noexcept {
  // What is decided in the place of the store says nothing of what the limit has left, and what a
  // process has prefetched comes back earlier than the limit refills.
  const bool is_of_limit = !is_degraded(after.source) && after.source != Source::prefetched;
  left = is_of_limit ? after : Decision{};
  left_at = now;
}

void WaitQueue::note_returned(const Decision& after, Time now) noexcept {
  const bool is_new = left.at == Time{} || after.at == Time{};
  if (is_new || now + after.reset_after <= left_at + left.reset_after) note_left(after, now);
}

/// Those that keep a turn here lose it when it is no longer their turn where they wait, or when
/// they have kept it for as long as they may.
Waiter* WaitQueue::first_in_turn() noexcept {
  for (;;) {
    Waiter* const first = this->first();
    if (first == nullptr || first->home().queue == this) return first;
    Place& kept = first->places_[*first->place_in(*this)];
    const bool is_its_turn = first->is_at_store() || first->is_first();
    if (is_its_turn && kept.standing.keeps_turn(first->clock_.now())) return first;
    erase(*first, kept);
  }
}

/// Whether its first waiter waits for this limit, and `call` would be behind it.
bool WaitQueue::is_waited_for_before(const QueuedCall& call, const Place& place) noexcept try {
  const Waiter* const first = first_in_turn();
  if (first == nullptr || first == &call) return false;
  return place.is_in_line || !line.would_be_first(request_of(call, place));
} catch (const std::bad_alloc&) {
  return false;  // it asks out of its turn
}

void WaitQueues::set(const WaitQueueOptions& options) {
  require_valid(options);
  const std::lock_guard lock(mutex_);
  options_ = options;
  across_processes = options.across_processes;
  if (options.client != 0) client_ = options.client;
}

WaitQueueOptions WaitQueues::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

std::size_t WaitQueues::waiting(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  if (!home_.is_here()) return 0;
  const auto found = queues_.find(std::string(key));
  return found == queues_.end() ? 0 : found->second.homes;
}

/// A thread that the child does not have may have been changing them: they are not even destroyed.
void WaitQueues::begin_here() noexcept {
  if (home_.is_here()) return;
  std::construct_at(&queues_);
  std::construct_at(&contended_);
  client_ = options_.client;
  home_ = {};
}

WaitQueue& WaitQueues::take_queue(const std::string& key) {
  begin_here();
  WaitQueue& queue = queues_[key];
  if (wake.load(std::memory_order_relaxed) == nullptr) {  // the mutex guards it
    wake.store(&WaitQueues::wake_waiting, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // see WakeUp::wake_here()
  }
  return queue;
}

std::shared_ptr<QueueTicket> WaitQueues::ticket(Store& store, const Key& key,
                                                const std::string& queue) {
  if (!options_.across_processes || !store.keeps_order()) return nullptr;
  if (client_ == 0) {
    client_ = 1 + static_cast<Word>(rng_of(store.clock(), DrawFor::line).below(word_limit));
  }
  const auto found = queues_.find(queue);
  if (found != queues_.end()) {
    if (auto ticket = found->second.ticket.lock()) return ticket;
  }
  const auto known = contended_.find(queue);
  const bool is_contended = known != contended_.end() && known->second > store.clock().now();
  return std::make_shared<QueueTicket>(store, key, client_, options_.ticket_ttl, is_contended);
}

void WaitQueues::note_contended(const std::string& key, Time now) noexcept try {
  constexpr std::size_t most = 1'000;
  if (contended_.size() >= most) {
    std::erase_if(contended_, [now](const auto& known) { return known.second <= now; });
  }
  if (contended_.size() < most) contended_[key] = now + options_.recheck;
} catch (const std::bad_alloc&) {
  return;  // the next caller asks first
}

void WaitQueues::wake_first(std::string_view key, Woken by, const Decision& left) noexcept try {
  const std::string name(key);  // a grant may end the subscription that has called, and its key
  std::shared_ptr<Waiter> woken;
  {
    const std::lock_guard lock(mutex_);
    begin_here();
    const auto found = queues_.find(name);
    if (found == queues_.end()) return;
    WaitQueue& queue = found->second;
    ++queue.wakes;
    if (by == Woken::by_release) ++queue.releases;
    if (const auto ticket = queue.ticket.lock()) ticket->others().woke(by);
    Waiter* const first = queue.first();
    if (by == Woken::by_release && first != nullptr) {
      queue.note_returned(left, first->clock_.now());
    } else {
      queue.left = {};
    }
    if (by == Woken::by_turn && first != nullptr && first->home().queue == &queue) {
      first->wake(false);
      woken = first->shared_from_this();
    }
  }
  pump(name);
  if (woken) woken->timer_changed();
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

void WaitQueues::wake_waiting(WhoWaits& queues, const Key& key, const Decision& left) noexcept try {
  // Who is granted may end the limiter.
  const auto alive = static_cast<WaitQueues&>(queues).shared_from_this();
  alive->wake_first(queue_key(key), Woken::by_release, left);
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

void WaitQueues::cancel_all() noexcept {
  std::vector<std::shared_ptr<Waiter>> all;
  {
    const std::lock_guard lock(mutex_);
    begin_here();
    for (const auto& [key, queue] : queues_) {
      const Waiter* const first = queue.first();
      if (first != nullptr) all.push_back(queue.waiters.find(first->arrival_.sequence)->second);
      for (const auto& [number, waiter] : queue.waiters) {
        if (waiter.get() != first) all.push_back(waiter);
      }
    }
  }
  // The first ones last: no waiter moves up only to be cancelled next.
  for (auto waiter = all.rbegin(); waiter != all.rend(); ++waiter) (*waiter)->cancel();
}

std::shared_ptr<Waiter> WaitQueues::next_to_ask(WaitQueue& queue) noexcept {
  Waiter* const first = queue.first_in_turn();
  // Nobody asks before one that was refused.
  if (first == nullptr || first->home().queue != &queue) return nullptr;
  if (queue.in_flight > 0) {
    if (queue.in_flight >= queue.in_flight_limit || !first->may_ask_too()) return nullptr;
  }
  if (first->home().standing.is_released(queue)) first->wake(true);
  if (queue.in_flight == 0 && first->turn_ && first->turn_->is_misplaced()) first->wake(false);
  if (first->stage_ != Waiter::Stage::queued) return nullptr;
  return queue.take_first().shared_from_this();
}

/// While the first keeps its turn, the next may wait for the same limit as it does.
std::shared_ptr<Waiter> WaitQueues::move_one_behind(WaitQueue& queue,
                                                    PendingActions& actions) noexcept {
  const Waiter* const first = queue.first_in_turn();
  if (first == nullptr || first->home().queue == &queue) return nullptr;
  const auto place = queue.line.first_without_turn();
  if (!place) return nullptr;
  Waiter& next = *queue.waiters.find(place->number)->second;
  WaitQueue& other = *first->home().queue;
  const auto place_there = next.place_in(other);
  if (next.stage_ != Waiter::Stage::queued || !place_there) return nullptr;
  if (next.moves_ >= Waiter::most_moves) return nullptr;
  if (!other.is_waited_for_before(next, next.places_[*place_there])) return nullptr;
  std::shared_ptr<Waiter> moved = next.shared_from_this();
  actions = moved->move_to(*place_there, next.clock_.now(), Time{}, Span::max());
  return moved;
}

/// How long a call waits at least behind the first, which sleeps, and others that surely take
/// `ahead` units. Zero: not known.
Span WaitQueues::wait_behind(const Waiter& first, const Waiter& call, Word ahead) noexcept {
  const Time now = call.clock_.now();
  const Time grant = std::max(now, first.earliest_);
  // The hint of a decision without the store is none of its grants, and who sleeps for its turn may
  // leave more behind than its grant does.
  if (is_degraded(first.refusal_.source) || grant <= now) return grant - now;
  // The first may leave its units, and move to the queue of another limit.
  const Word left = first.home().units - first.own_units();
  const Word units = std::max<Word>(0, ahead + call.home().units - left);
  return grant - now + call.limit().time_for(first.home().units, units);
}

/// Whether the first waiter sleeps until there are units, as far as it knows.
bool WaitQueues::first_sleeps(const WaitQueue& queue) noexcept {
  const Waiter* const first = queue.first();
  if (first == nullptr || first->stage_ != Waiter::Stage::sleeping) return false;
  return !first->home().freed_early && first->home().queue == &queue;
}

/// How long the first waiter, which sleeps, and those ahead in its flow, which ask for so many
/// units, keep a waiter at least; none: they do not. Zero: not known.
std::optional<Span> WaitQueues::least_wait(const WaitQueue& queue, const Line::Place& place,
                                           Word ahead) noexcept {
  const Waiter& first = *queue.first();
  const Waiter& waiter = *queue.waiters.find(place.number)->second;
  if (&waiter == &first || first.may_leave_) return std::nullopt;
  if (waiter.home().queue != &queue) return std::nullopt;
  if (waiter.shares_flow_with(first)) ahead -= first.own_units();
  return wait_behind(first, waiter, ahead);
}

/// Ends a waiter that the callers ahead of it keep beyond its deadline.
std::shared_ptr<Waiter> WaitQueues::end_one_too_late(WaitQueue& queue,
                                                     PendingActions& actions) noexcept {
  using Unjudged = WaitQueue::Unjudged;
  if (queue.unjudged == Unjudged::none || !first_sleeps(queue)) return nullptr;
  std::shared_ptr<Waiter> late;
  Span wait{0};
  const auto judge = [&](const Line::Place& place, Word ahead) {
    const auto& waiter = queue.waiters.find(place.number)->second;
    if (waiter->stage_ != Waiter::Stage::queued) return false;
    const auto least = least_wait(queue, place, ahead);
    if (!least || *least <= waiter->deadline_ - waiter->clock_.now()) return false;
    wait = *least;
    late = waiter;
    return true;
  };
  if (queue.unjudged == Unjudged::all) {
    queue.line.find_in_flows(judge);
  } else if (const auto one = queue.waiters.find(queue.unjudged_one); one != queue.waiters.end()) {
    const Line::Place place = WaitQueue::place_of(*one->second);
    judge(place, queue.line.units_before_last(place).value_or(0));
  }
  if (late) {
    actions = late->end_refused(wait);
  } else {
    queue.unjudged = Unjudged::none;
  }
  return late;
}

/// Sends the requests that may be sent. One thread does so for a queue at a time, in a loop: with a
/// store that answers before execute() returns, this would otherwise recurse once for each waiter.
void WaitQueues::pump(const std::string& key) noexcept {
  std::unique_lock lock(mutex_);
  begin_here();
  const auto found = queues_.find(key);
  if (found == queues_.end()) return;
  WaitQueue& queue = found->second;
  queue.pump_again = true;
  if (queue.is_pumping) return;
  queue.is_pumping = true;
  while (queue.pump_again) {
    queue.pump_again = false;
    while (const std::shared_ptr<Waiter> next = next_to_ask(queue)) {
      lock.unlock();
      next->send();
      lock.lock();
    }
    PendingActions actions;
    std::shared_ptr<Waiter> waiter;
    while ((waiter = move_one_behind(queue, actions)) ||
           (waiter = end_one_too_late(queue, actions))) {
      lock.unlock();
      waiter->run(std::exchange(actions, {}));
      lock.lock();
    }
  }
  queue.is_pumping = false;
  if (queue.callers == 0) queues_.erase(key);  // `found` may be stale
  // Relaxed: the mutex orders it, and who still sees the pointer finds no queue.
  if (queues_.empty()) wake.store(nullptr, std::memory_order_relaxed);
}

std::string queue_key(const Key& key) {
  std::string text = std::to_string(key.tag().size());
  text += ':';
  text += key.tag();
  text += key.name();
  return text;
}

}  // namespace sluice::detail

namespace sluice {

void Waitable::set_wait_queue(const WaitQueueOptions& options) const { queues_->set(options); }

WaitQueueOptions Waitable::wait_queue() const { return queues_->options(); }

void Waitable::cancel_waits() const noexcept { queues_->cancel_all(); }

std::size_t Waitable::waiters_of(const Key& key) const {
  return queues_->waiting(detail::queue_key(key));
}

}  // namespace sluice
