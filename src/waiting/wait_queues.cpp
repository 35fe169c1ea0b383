// Which waiter asks the store next.
#include "src/waiting/wait_queues.hpp"

#include <stdexcept>
#include <vector>

#include "sluice/limiters/waitable.hpp"

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
  require(options.aging >= 1us && options.aging <= 24h,
          "WaitQueueOptions::aging must be 1 us to 86400000000 us", text(options.aging));
  require(options.recheck >= 1ms && options.recheck <= 24h,
          "WaitQueueOptions::recheck must be 1000 us to 86400000000 us", text(options.recheck));
  require(options.ticket_ttl >= 10ms && options.ticket_ttl <= 1min,
          "WaitQueueOptions::ticket_ttl must be 10000 us to 60000000 us", text(options.ticket_ttl));
  require(options.client >= 0 && options.client <= word_limit,
          "WaitQueueOptions::client must be 0 to 2^52", std::to_string(options.client));
}

}  // namespace

void WaitQueues::set(const WaitQueueOptions& options) {
  require_valid(options);
  const std::lock_guard lock(mutex_);
  options_ = options;
  if (options.client != 0) client_ = options.client;
}

WaitQueueOptions WaitQueues::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

std::size_t WaitQueues::waiting(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(std::string(key));
  return found == queues_.end() ? 0 : found->second.waiters.size();
}

bool WaitQueues::has_sleeper_before(const std::string& key, const PlaceInLine& place) const {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(key);
  if (found == queues_.end() || found->second.waiters.empty()) return false;
  const Waiter& first = *found->second.waiters.begin()->second;
  return first.stage_ == Waiter::Stage::sleeping && first.place_ < place;
}

Word WaitQueues::client() const noexcept {
  const std::lock_guard lock(mutex_);
  return client_;
}

std::shared_ptr<QueueTicket> WaitQueues::ticket(Store& store, const Key& key) {
  if (!has_tickets_at(store)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (client_ == 0) {
    client_ = 1 + static_cast<Word>(rng_of(store.clock(), DrawFor::line).below(word_limit));
  }
  const auto found = queues_.find(queue_key(key));
  auto ticket = found == queues_.end() ? nullptr : found->second.ticket.lock();
  if (ticket) return ticket;
  ticket = std::make_shared<QueueTicket>(store, key, client_, options_.ticket_ttl);
  const auto known = contended_.find(queue_key(key));
  ticket->was_contended = known != contended_.end() && known->second > store.clock().now();
  return ticket;
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

void WaitQueues::wake_first(std::string_view key, Woken by) noexcept try {
  const std::string name(key);
  {
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(name);
    if (found == queues_.end() || found->second.waiters.empty()) return;
    Waiter& first = *found->second.waiters.begin()->second;
    ++found->second.releases;
    found->second.left = {};  // it has more now
    if (first.terms_.ticket) first.terms_.ticket->is_woken = true;
    if (by == Woken::by_release) first.ask_at_ = first.earliest_ = Time::min();
    if (first.stage_ == Waiter::Stage::sleeping) {
      first.stage_ = Waiter::Stage::queued;
      first.resumes_ = true;
    }
  }
  pump(name);
} catch (const std::bad_alloc&) {
  return;  // the first waiter asks again by its own timer
}

void WaitQueues::cancel_all() noexcept {
  std::vector<std::shared_ptr<Waiter>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, queue] : queues_) {
      for (const auto& [place, waiter] : queue.waiters) all.push_back(waiter);
    }
  }
  // The last one first: no waiter moves up only to be cancelled next.
  for (auto waiter = all.rbegin(); waiter != all.rend(); ++waiter) (*waiter)->cancel();
}

std::shared_ptr<Waiter> WaitQueues::next_to_ask(WaitQueue& queue) noexcept {
  for (const auto& [place, waiter] : queue.waiters) {
    switch (waiter->stage_) {
      case Waiter::Stage::queued:
        if (queue.in_flight == 0) return waiter;
        return queue.in_flight < queue.in_flight_limit && waiter->may_ask_too() ? waiter : nullptr;
      case Waiter::Stage::asking:
        break;
      default:
        return nullptr;  // it was refused: no later waiter asks before it
    }
  }
  return nullptr;
}

/// Ends a waiter that the callers ahead of it keep beyond its deadline.
std::shared_ptr<Waiter> WaitQueues::end_one_too_late(WaitQueue& queue,
                                                     Waiter::PendingActions& actions) noexcept {
  using Unjudged = WaitQueue::Unjudged;
  if (queue.unjudged == Unjudged::none || queue.waiters.empty()) return nullptr;
  const Waiter& first = *queue.waiters.begin()->second;
  if (first.stage_ != Waiter::Stage::sleeping || first.terms_.freed_early) return nullptr;
  auto next = std::next(queue.waiters.begin());
  Word ahead = 0;  // of those behind the first
  if (queue.unjudged == Unjudged::last && next != queue.waiters.end()) {
    next = std::prev(queue.waiters.end());
    ahead = queue.units - first.own_units() - next->second->own_units();
  }
  for (; next != queue.waiters.end(); ++next) {
    Waiter& waiter = *next->second;
    const Span wait = waiter.wait_behind(first, ahead);
    if (waiter.stage_ == Waiter::Stage::queued &&
        wait > waiter.terms_.deadline - waiter.terms_.clock.now()) {
      const std::shared_ptr<Waiter> late = next->second;
      actions = waiter.end_refused(wait);
      return late;
    }
    ahead += waiter.own_units();
  }
  queue.unjudged = Unjudged::none;
  return nullptr;
}

/// Sends the requests that may be sent. One thread does so for a queue at a time, in a loop: with a
/// store that answers before execute() returns, this would otherwise recurse once for each waiter.
void WaitQueues::pump(const std::string& key) noexcept {
  std::unique_lock lock(mutex_);
  const auto found = queues_.find(key);
  if (found == queues_.end()) return;
  WaitQueue& queue = found->second;
  queue.pump_again = true;
  if (queue.is_pumping) return;
  queue.is_pumping = true;
  while (queue.pump_again) {
    queue.pump_again = false;
    while (const std::shared_ptr<Waiter> next = next_to_ask(queue)) {
      next->stage_ = Waiter::Stage::asking;
      ++queue.in_flight;
      lock.unlock();
      next->send();
      lock.lock();
    }
    Waiter::PendingActions ended;
    while (const std::shared_ptr<Waiter> late = end_one_too_late(queue, ended)) {
      lock.unlock();
      late->run(ended);
      lock.lock();
    }
  }
  queue.is_pumping = false;
  if (queue.waiters.empty()) queues_.erase(key);  // `found` may be stale
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
