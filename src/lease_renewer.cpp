// Renewing leases: a queue of when each is due, what was asked and is not answered yet, and at most
// one thread that serves both. Answers come on whichever thread a store has.
#include "sluice/lease_renewer.hpp"

#include <algorithm>
#include <list>

namespace sluice {
namespace {

Span part_of(const detail::HeldLease& held, Word parts) noexcept {
  return Span{std::max(Word{1}, held.terms().ttl / parts)};
}

}  // namespace

/// What answers need, which may come when the renewer is gone.
struct LeaseRenewer::State {
  Waker waker;  // of the thread
  std::mutex mutex;
  Queue queue;                // guarded by mutex, as what follows
  Queue lost;                 // whose holders are to be told
  std::list<Batch> asked;     // not all answered yet
  Time next = Time::max();    // when the thread looks again
  std::size_t sweep_at = 64;  // when what was given back is next looked for
};

/// The renewals that one store is asked at once.
struct LeaseRenewer::Batch {
  struct Renewal {
    Batch* batch;
    Queue::node_type node;
  };

  std::shared_ptr<State> state;
  Time asked_at;
  Time answered_by;  // by then every answer is here
  std::vector<Renewal> renewals;
  std::size_t left;               // to be answered
  std::shared_ptr<Waker> waiter;  // who waits for all of them, if anybody does
  std::list<Batch>::iterator self{};

  void send();
  static void answered(void* context, const Outcome& outcome) noexcept;
};

void LeaseRenewer::Batch::send() {
  std::vector<Step> steps;
  for (const Renewal& renewal : renewals) steps.push_back(renewal.node.mapped().held->renewal());
  std::vector<Plan> plans;
  std::vector<Completion> done;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    plans.push_back(Plan(steps[i]).within(part_of(*renewals[i].node.mapped().held, 3)));
    done.emplace_back(&Batch::answered, &renewals[i]);
  }
  Store& store = renewals.front().node.mapped().held->store();
  store.execute_batch(plans, done);  // the last answer ends this object
}

void LeaseRenewer::Batch::answered(void* context, const Outcome& outcome) noexcept {
  auto& [batch, own] = *static_cast<Renewal*>(context);
  const std::shared_ptr<State> state = batch->state;
  Queue::node_type node = std::move(own);  // dropped behind the lock, if nobody holds it any more
  std::list<Batch> over;
  auto& held = *node.mapped().held;
  if (!outcome.error) held.renewed(outcome.decision, batch->asked_at);
  node.key() = batch->asked_at + part_of(held, outcome.error ? 12 : 3);
  if (held.is_held() && held.lost()) held.lose();
  const std::lock_guard lock(state->mutex);
  bool wakes = --batch->left == 0;
  if (wakes) {
    if (batch->waiter) batch->waiter->wake();
    over.splice(over.begin(), state->asked, batch->self);
  }
  if (held.is_held()) {
    wakes = wakes || node.key() < state->next;
    state->queue.insert(std::move(node));
  } else if (held.is_open()) {
    wakes = true;
    state->lost.insert(std::move(node));
  }
  if (wakes) state->waker.wake();
}

LeaseRenewer::LeaseRenewer(Clock& clock) : clock_(clock), state_(std::make_shared<State>()) {}

void LeaseRenewer::keep(std::shared_ptr<detail::HeldLease> held, Lease::OnLost on_lost) {
  const Span ttl{held->terms().ttl};
  const Time due = held->safe_until() - ttl + part_of(*held, 3);
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    if (state.queue.size() >= state.sweep_at) {
      std::erase_if(state.queue, [](const auto& item) { return !item.second.held->is_open(); });
      state.sweep_at = std::max(std::size_t{64}, 2 * state.queue.size());
    }
    state.queue.emplace(due, Kept{std::move(held), std::move(on_lost)});
  }
  state.waker.wake();
}

std::size_t LeaseRenewer::size() const {
  const auto is_held = [](const Queue::node_type& node) {
    return !node.empty() && node.mapped().held->is_held();
  };
  const std::lock_guard lock(state_->mutex);
  auto count = std::ranges::count_if(state_->queue,
                                     [](const auto& item) { return item.second.held->is_held(); });
  for (const Batch& batch : state_->asked) {
    count += std::ranges::count_if(batch.renewals, is_held, &Batch::Renewal::node);
  }
  return static_cast<std::size_t>(count);
}

/// What is to be renewed now. What was given back is forgotten.
std::vector<LeaseRenewer::Queue::node_type> LeaseRenewer::take_due(Time now) {
  std::vector<Queue::node_type> due;
  Queue& queue = state_->queue;
  const std::lock_guard lock(state_->mutex);
  while (!queue.empty() && queue.begin()->first <= now) due.push_back(queue.extract(queue.begin()));
  std::erase_if(due, [](const auto& node) { return !node.mapped().held->is_open(); });
  return due;
}

/// Asks every store for its own, each at once. Returns what the last answer of each store wakes
/// that this thread may wait for.
std::vector<std::shared_ptr<Waker>> LeaseRenewer::ask(std::vector<Queue::node_type> due, Time now,
                                                      bool waits) {
  const auto store_of = [](const auto& node) { return &node.mapped().held->store(); };
  std::ranges::stable_sort(due, std::less<>{}, store_of);
  std::list<Batch> batches;
  std::vector<std::shared_ptr<Waker>> waiters;
  for (auto first = due.begin(); first != due.end();) {
    Store* const store = store_of(*first);
    const auto last =
        std::find_if(first, due.end(), [&](const auto& node) { return store_of(node) != store; });
    Batch& batch = batches.emplace_back(Batch{state_, now, now, {}, 0, nullptr});
    for (; first != last; ++first) {
      batch.answered_by = std::max(batch.answered_by, now + part_of(*first->mapped().held, 3));
      batch.renewals.push_back({&batch, std::move(*first)});
    }
    batch.left = batch.renewals.size();
    batch.self = std::prev(batches.end());
    if (waits && store->may_block()) waiters.push_back(batch.waiter = std::make_shared<Waker>());
  }
  std::vector<Batch*> sent;
  for (Batch& batch : batches) sent.push_back(&batch);
  {
    const std::lock_guard lock(state_->mutex);
    state_->asked.splice(state_->asked.end(), batches);
  }
  for (Batch* batch : sent) batch->send();
  return waiters;
}

/// Tells the holders of what was lost. Returns when something is due.
Time LeaseRenewer::conclude(Time now) {
  Queue lost;
  {
    const std::lock_guard lock(state_->mutex);
    lost.swap(state_->lost);
  }
  for (const auto& [due, kept] : lost) {
    // An earlier handler may have ended it.
    if (kept.on_lost && kept.held->is_open()) kept.on_lost(kept.held->id());
  }
  const std::lock_guard lock(state_->mutex);
  const Queue& queue = state_->queue;
  Time next = queue.empty() ? Time::max() : queue.begin()->first;
  for (const Batch& batch : state_->asked) {
    if (batch.answered_by > now) next = std::min(next, batch.answered_by);
  }
  state_->next = next;
  return next;
}

Time LeaseRenewer::renew_due() {
  const Time now = clock_.now();
  for (const auto& waiter : ask(take_due(now), now, true)) waiter->wait();
  return conclude(now);
}

void LeaseRenewer::start() {
  if (thread_.joinable()) return;
  stopping_ = false;
  std::latch known(1);  // to the clock: what waits on it from here on waits for the thread as well
  thread_ = std::thread([this, &known] { run(known); });
  known.wait();
}

void LeaseRenewer::stop() noexcept {
  if (!thread_.joinable()) return;
  stopping_ = true;
  state_->waker.wake();
  thread_.join();
}

void LeaseRenewer::run(std::latch& known) {
  const KnownThread here(clock_);
  known.count_down();
  for (;;) {
    state_->waker.reset();
    if (stopping_) return;
    const Time now = clock_.now();
    ask(take_due(now), now, false);
    clock_.wait_until(conclude(now), state_->waker);
  }
}

}  // namespace sluice
