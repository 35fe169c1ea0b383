// LeaseRenewer: a queue of leases by due time, the pending renewals, and at most one thread that
// serves both. Answers come on any thread of a store.
#include "sluice/limiters/lease_renewer.hpp"

#include <algorithm>
#include <list>
#include <stdexcept>
#include <utility>

#include "sluice/detail/fork_count.hpp"
#include "sluice/detail/held_lease.hpp"
#include "sluice/detail/uncancelled.hpp"
#include "sluice/extend/manual_reset_event.hpp"

namespace sluice {
namespace {

/// The pause after std::bad_alloc.
constexpr Span pause_without_memory = std::chrono::milliseconds{1};

/// Tells a forked child from its parent; never 0.
std::uint64_t this_process() { return std::uint64_t{detail::fork_count()} + 1; }

Span part_of(const detail::HeldLease& held, Word parts) noexcept {
  return Span{std::max(Word{1}, held.terms().ttl / parts)};
}

}  // namespace

/// The state that answers need, which may come after the renewer was destroyed.
struct LeaseRenewer::State {
  explicit State(std::shared_ptr<ManualResetEvent> of) : waker(std::move(of)) {}

  std::shared_ptr<ManualResetEvent> waker;  // of the thread
  std::mutex mutex;
  Queue queue;                // guarded by mutex, as all that follows
  Queue lost;                 // whose handlers must be called
  std::list<Batch> asked;     // pending
  Time next = Time::max();    // when the thread wakes next
  std::size_t sweep_at = 64;  // the queue size of the next sweep for released leases
};

/// The renewals for one store, sent together.
struct LeaseRenewer::Batch {
  struct Renewal {
    Batch* batch;
    Queue::node_type node;
    Time answered_by{};
  };

  Batch(std::shared_ptr<State> of, Time now) : state(std::move(of)), asked_at(now) {}

  void prepare();
  void send() noexcept;
  static void answered(void* context, const Outcome& outcome) noexcept;
  void collect_lost(Queue& lost);
  void expect_later(Time now);

  std::shared_ptr<State> state;
  Time asked_at;
  Time answered_by = Time::max();  // the first time by which one is answered
  Time runs_out = Time::max();     // the first time at which one is lost without an answer
  std::vector<Renewal> renewals;
  std::vector<Step> steps;  // one for each renewal, as the following
  std::vector<Plan> plans;
  std::vector<Completion> done;
  std::size_t left = 0;                      // renewals without an answer
  std::shared_ptr<ManualResetEvent> waiter;  // set after the last answer; null: no thread waits
  std::list<Batch>::iterator self{};
};

/// Makes the plans for send().
void LeaseRenewer::Batch::prepare() {
  steps.reserve(renewals.size());
  plans.reserve(renewals.size());
  done.reserve(renewals.size());
  for (Renewal& renewal : renewals) {
    const detail::HeldLease& held = *renewal.node.mapped().held;
    steps.push_back(held.renew_step());
    // At most until the lease is lost: then its handler runs, whatever the answer.
    const Span lasts = std::max(Span{1}, held.safe_until() - asked_at);
    const Span within = std::min(part_of(held, 3), lasts);
    plans.push_back(Plan(steps.back()).within(within));
    renewal.answered_by = asked_at + within;
    answered_by = std::min(answered_by, renewal.answered_by);
    runs_out = std::min(runs_out, held.safe_until());
  }
  left = renewals.size();
}

void LeaseRenewer::Batch::send() noexcept {
  // Not in prepare(), after which memory may end: a completion that is destroyed is an answer.
  for (Renewal& renewal : renewals) done.emplace_back(&Batch::answered, &renewal);
  const std::vector<Step> asked = std::move(steps);  // the last answer destroys this object
  const std::vector<Plan> each = std::move(plans);
  std::vector<Completion> answers = std::move(done);
  renewals.front().node.mapped().held->store().execute_batch(each, answers);
}

void LeaseRenewer::Batch::answered(void* context, const Outcome& outcome) noexcept {
  auto& renewal = *static_cast<Renewal*>(context);
  Batch* const batch = renewal.batch;
  Queue::node_type& own = renewal.node;
  const std::shared_ptr<State> state = batch->state;
  Queue::node_type node;  // destroyed after the lock, if the lease is not held
  std::list<Batch> over;
  auto& held = *own.mapped().held;
  if (outcome.error) {
    held.tell(LeaseEvent::Change::renewal_failed);
  } else {
    held.renewed(outcome.decision, outcome.output, batch->asked_at);
  }
  own.key() = batch->asked_at + part_of(held, outcome.error ? 12 : 3);
  if (held.is_held()) {
    own.key() = std::min(own.key(), held.safe_until());
    if (held.lost()) held.lose();
  }
  const std::lock_guard lock(state->mutex);
  node = std::move(own);  // under the lock: size() reads it
  bool wakes = --batch->left == 0;
  if (wakes) {
    if (batch->waiter) batch->waiter->wake();
    over.splice(over.begin(), state->asked, batch->self);
  }
  if (held.is_lost()) {
    wakes = true;
    state->lost.insert(std::move(node));
  } else if (held.is_open()) {
    wakes = wakes || node.key() < state->next;
    state->queue.insert(std::move(node));
  }
  if (wakes) state->waker->wake();
}

/// Moves the handlers of leases that have expired without an answer to `lost`; the nodes stay for
/// the answers. REQUIRES: the lock is held.
void LeaseRenewer::Batch::collect_lost(Queue& lost) {
  runs_out = Time::max();
  for (Renewal& renewal : renewals) {
    if (renewal.node.empty()) continue;
    auto& [held, on_lost] = renewal.node.mapped();
    if (held->lost()) {
      if (!held->lose() && !on_lost) continue;
      Kept& kept = lost.emplace(asked_at, Kept{held, nullptr})->second;
      kept.on_lost = std::exchange(on_lost, nullptr);
    } else if (held->is_held()) {
      runs_out = std::min(runs_out, held->safe_until());
    }
  }
}

/// Looks for late answers again when a failed renewal would be due. REQUIRES: the lock is held.
void LeaseRenewer::Batch::expect_later(Time now) {
  answered_by = Time::max();
  for (Renewal& renewal : renewals) {
    if (renewal.node.empty()) continue;
    const detail::HeldLease& held = *renewal.node.mapped().held;
    if (held.is_lost() || !held.is_open()) continue;
    if (renewal.answered_by <= now) renewal.answered_by = now + part_of(held, 12);
    answered_by = std::min(answered_by, renewal.answered_by);
  }
}

LeaseRenewer::LeaseRenewer(Clock& clock, Renewing renewing)
    : clock_(clock), renewing_(renewing), thread_(clock) {
  if (renewing == Renewing::by_thread && clock.loop() != nullptr) {
    throw std::invalid_argument(
        "LeaseRenewer: a simulated world has no threads, allowed: Renewing::by_hand");
  }
  state_ = std::make_shared<State>(thread_.waker());
}

void LeaseRenewer::keep(std::shared_ptr<detail::HeldLease> held, Lease::OnLost on_lost) {
  if (renewing_ == Renewing::by_thread) start();
  const Span ttl{held->terms().ttl};
  const Time due = held->safe_until() - ttl + part_of(*held, 3);
  State& state = *state_;
  Queue over;  // destroyed after the lock: objects that its handlers own may use the renewer
  {
    const std::lock_guard lock(state.mutex);
    if (state.queue.size() >= state.sweep_at) {
      for (auto i = state.queue.begin(); i != state.queue.end();) {
        const auto item = i++;
        if (!item->second.held->is_open()) over.insert(state.queue.extract(item));
      }
      state.sweep_at = std::max(std::size_t{64}, 2 * state.queue.size());
    }
    state.queue.emplace(due, Kept{std::move(held), std::move(on_lost)});
  }
  state.waker->wake();
}

std::size_t LeaseRenewer::size() const {
  const auto is_held = [](const Queue::node_type& node) {
    return !node.empty() && node.mapped().held->is_held();
  };
  const std::lock_guard lock(state_->mutex);
  auto count = std::count_if(state_->queue.begin(), state_->queue.end(),
                             [](const auto& item) { return item.second.held->is_held(); });
  for (const Batch& batch : state_->asked) {
    count += std::count_if(batch.renewals.begin(), batch.renewals.end(),
                           [&](const Batch::Renewal& renewal) { return is_held(renewal.node); });
  }
  return static_cast<std::size_t>(count);
}

/// Takes the leases that are due. Drops released ones, and moves lost ones to State::lost.
std::vector<LeaseRenewer::Queue::node_type> LeaseRenewer::take_due(Time now) {
  std::vector<Queue::node_type> due;
  {
    Queue& queue = state_->queue;
    const std::lock_guard lock(state_->mutex);
    due.reserve(static_cast<std::size_t>(std::distance(queue.begin(), queue.upper_bound(now))));
    while (!queue.empty() && queue.begin()->first <= now) {
      auto node = queue.extract(queue.begin());
      detail::HeldLease& held = *node.mapped().held;
      if (held.lost()) {  // such as after a handler has destroyed its store
        held.lose();
        state_->lost.insert(std::move(node));
      } else if (held.is_open() && !held.is_renewed_at(now)) {
        node.key() = held.safe_until();  // when it is lost, unless it was released
        queue.insert(std::move(node));
      } else {
        due.push_back(std::move(node));
      }
    }
  }
  // After the lock: objects that their handlers own may use the renewer.
  std::erase_if(due, [](const auto& node) { return !node.mapped().held->is_open(); });
  return due;
}

/// Moves the leases in `due` to one batch for each store.
void LeaseRenewer::divide(std::vector<Queue::node_type>& due, Time now, bool waits,
                          std::list<Batch>& batches) {
  const auto store_of = [](const auto& node) { return &node.mapped().held->store(); };
  std::stable_sort(due.begin(), due.end(), [&](const auto& a, const auto& b) {
    return std::less<>{}(store_of(a), store_of(b));
  });
  for (auto first = due.begin(); first != due.end();) {
    Store* const store = store_of(*first);
    const auto last =
        std::find_if(first, due.end(), [&](const auto& node) { return store_of(node) != store; });
    Batch& batch = batches.emplace_back(state_, now);
    batch.self = std::prev(batches.end());
    if (waits && store->may_block()) batch.waiter = std::make_shared<ManualResetEvent>();
    batch.renewals.reserve(static_cast<std::size_t>(last - first));
    for (; first != last; ++first) batch.renewals.push_back({&batch, std::move(*first), {}});
    batch.prepare();
  }
}

/// Sends one batch to every store. Returns the events that the last answers set, for the stores
/// that this thread may wait for. Without memory nothing is sent, and all leases stay due.
std::vector<std::shared_ptr<ManualResetEvent>> LeaseRenewer::ask(std::vector<Queue::node_type> due,
                                                                 Time now, bool waits) {
  std::list<Batch> batches;
  std::vector<Batch*> sent;
  std::vector<std::shared_ptr<ManualResetEvent>> waiters;
  try {
    divide(due, now, waits, batches);
    for (Batch& batch : batches) {
      sent.push_back(&batch);
      if (batch.waiter) waiters.push_back(batch.waiter);
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(state_->mutex);
    const auto put_back = [&](Queue::node_type& node) {
      if (!node.empty()) state_->queue.insert(std::move(node));
    };
    for (auto& node : due) put_back(node);
    for (Batch& batch : batches) {
      for (auto& renewal : batch.renewals) put_back(renewal.node);
    }
    throw;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->asked.splice(state_->asked.end(), batches);
  }
  for (Batch* batch : sent) batch->send();
  return waiters;
}

/// Calls the handlers of leases that are lost, have expired, or whose store was destroyed. Returns
/// when the next lease is due.
Time LeaseRenewer::conclude(Time now) {
  Queue lost;
  {
    const std::lock_guard lock(state_->mutex);
    Queue& queue = state_->queue;
    for (auto i = queue.begin(); i != queue.end() && i->first <= now;) {
      const auto item = i++;
      if (!item->second.held->lost()) continue;
      item->second.held->lose();
      state_->lost.insert(queue.extract(item));
    }
    for (Batch& batch : state_->asked) {
      if (batch.runs_out <= now) batch.collect_lost(state_->lost);
      if (batch.answered_by <= now) batch.expect_later(now);
    }
    lost.swap(state_->lost);
  }
  for (const auto& [due, kept] : lost) {
    kept.held->tell_lost();
    // An earlier handler may have released it.
    if (!kept.on_lost || !kept.held->is_open()) continue;
    try {
      kept.on_lost(kept.held->id());
    } catch (...) {  // the program's own; other leases are renewed all the same
    }
  }
  const std::lock_guard lock(state_->mutex);
  const Queue& queue = state_->queue;
  Time next = queue.empty() ? Time::max() : queue.begin()->first;
  for (const Batch& batch : state_->asked) {
    next = std::min({next, batch.answered_by, batch.runs_out});
  }
  state_->next = next;
  return next;
}

Time LeaseRenewer::renew_due() {
  const Time now = clock_.now();
  static_cast<void>(
      conclude(now));  // handlers of expired leases need not wait for the answers about others
  const auto waiters = ask(take_due(now), now, true);
  for (const auto& waiter : waiters) waiter->wait();
  return conclude(clock_.now());
}

bool LeaseRenewer::is_running() const noexcept { return runs_in_.load() == this_process(); }

void LeaseRenewer::start() {
  if (is_running()) return;  // without the lock, which stop() holds while a handler ends
  const std::lock_guard starting(starting_);
  thread_.start([this] { return renew_without_waiting(); });
  runs_in_ = this_process();
  if (state_->waker == thread_.waker()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->waker = thread_.waker();  // in a forked child
  }
  thread_.wake();
}

void LeaseRenewer::stop() noexcept {
  const std::lock_guard starting(starting_);
  thread_.stop();
  runs_in_ = 0;
}

Time LeaseRenewer::renew_without_waiting() noexcept {
  const Time now = clock_.now();
  try {
    static_cast<void>(conclude(now));
    ask(take_due(now), now, false);
    return conclude(now);
  } catch (const std::bad_alloc&) {
    return now + pause_without_memory;
  }
}

}  // namespace sluice
