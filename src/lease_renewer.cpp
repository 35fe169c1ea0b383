// Renewing leases: a queue of when each is due, and at most one thread that serves it.
#include "sluice/lease_renewer.hpp"

#include <algorithm>

namespace sluice {
namespace {

Span part_of(const detail::HeldLease& held, Word parts) noexcept {
  return Span{std::max(Word{1}, held.terms().ttl / parts)};
}

/// Renews leases of one store as one batch.
template <class Nodes>
void renew_batch(Nodes nodes, Time now) {
  std::vector<Step> steps;
  for (const auto& node : nodes) steps.push_back(node.mapped().held->renewal());
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    plans.push_back(Plan(steps[i]).within(part_of(*nodes[i].mapped().held, 3)));
  }
  std::vector<Decision> decisions(steps.size());
  std::vector<std::error_code> errors(steps.size());
  decide_batch(nodes.front().mapped().held->store(), plans, decisions, errors);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& held = *nodes[i].mapped().held;
    if (!errors[i]) held.renewed(decisions[i], now);
    nodes[i].key() = now + part_of(held, errors[i] ? 12 : 3);
  }
}

}  // namespace

void LeaseRenewer::keep(std::shared_ptr<detail::HeldLease> held, Lease::OnLost on_lost) {
  const Span ttl{held->terms().ttl};
  const Time due = held->safe_until() - ttl + part_of(*held, 3);
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= sweep_at_) {
      std::erase_if(queue_, [](const auto& item) { return !item.second.held->is_open(); });
      sweep_at_ = std::max(std::size_t{64}, 2 * queue_.size());
    }
    queue_.emplace(due, Kept{std::move(held), std::move(on_lost)});
  }
  waker_.wake();
}

std::size_t LeaseRenewer::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(queue_, [](const auto& item) { return item.second.held->is_held(); }));
}

std::vector<LeaseRenewer::Queue::node_type> LeaseRenewer::take_due(Time now) {
  std::vector<Queue::node_type> due;
  const std::lock_guard lock(mutex_);
  while (!queue_.empty() && queue_.begin()->first <= now) {
    due.push_back(queue_.extract(queue_.begin()));
  }
  return due;
}

void LeaseRenewer::renew(std::vector<Queue::node_type>& due, Time now, std::vector<Kept>& lost) {
  std::erase_if(due, [](const auto& node) { return !node.mapped().held->is_open(); });
  const auto store_of = [](const auto& node) { return &node.mapped().held->store(); };
  std::ranges::stable_sort(due, std::less<>{}, store_of);
  for (std::size_t first = 0, last = 0; first < due.size(); first = last) {
    while (last < due.size() && store_of(due[last]) == store_of(due[first])) ++last;
    renew_batch(std::span(due).subspan(first, last - first), now);
  }
  std::erase_if(due, [&](auto& node) {
    auto& held = *node.mapped().held;
    if (held.is_held() && held.lost()) held.lose();
    if (held.is_held()) return false;
    // Not held and still open: lost, by the store's word or by time.
    if (held.is_open() && node.mapped().on_lost) lost.push_back(std::move(node.mapped()));
    return true;
  });
}

Time LeaseRenewer::renew_due() {
  const Time now = clock_.now();
  std::vector<Queue::node_type> due = take_due(now);
  std::vector<Kept> lost;
  if (!due.empty()) renew(due, now, lost);
  Time next = Time::max();
  {
    const std::lock_guard lock(mutex_);
    for (auto& node : due) queue_.insert(std::move(node));
    if (!queue_.empty()) next = queue_.begin()->first;
  }
  for (const Kept& kept : lost) {
    if (kept.held->is_open())
      kept.on_lost(kept.held->id());  // an earlier handler may have ended it
  }
  return next;
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
  waker_.wake();
  thread_.join();
}

void LeaseRenewer::run(std::latch& known) {
  const KnownThread here(clock_);
  known.count_down();
  for (;;) {
    waker_.reset();
    if (stopping_) return;
    clock_.wait_until(renew_due(), waker_);
  }
}

}  // namespace sluice
