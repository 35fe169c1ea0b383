// Who may ask, and in which order.
#include "sluice/detail/wait_queues.hpp"

#include <stdexcept>

namespace sluice::detail {
namespace {

void require(bool good, const char* what, const std::string& got) {
  if (!good) throw std::invalid_argument(std::string(what) + ", got " + got);
}

}  // namespace

void WaitQueues::set(const WaitQueueOptions& options) {
  require(options.most >= 1, "WaitQueueOptions::most must be 1 or more",
          std::to_string(options.most));
  require(options.aging >= Span{1} && options.aging <= std::chrono::hours{24},
          "WaitQueueOptions::aging must be 1 us to 86400000000 us",
          std::to_string(options.aging.count()) + " us");
  require(options.horizon >= Span{0}, "WaitQueueOptions::horizon must be 0 us or more",
          std::to_string(options.horizon.count()) + " us");
  require(
      options.recheck >= std::chrono::milliseconds{1} && options.recheck <= std::chrono::hours{24},
      "WaitQueueOptions::recheck must be 1000 us to 86400000000 us",
      std::to_string(options.recheck.count()) + " us");
  require(options.place_ttl >= std::chrono::milliseconds{10} &&
              options.place_ttl <= std::chrono::minutes{1},
          "WaitQueueOptions::place_ttl must be 10000 us to 60000000 us",
          std::to_string(options.place_ttl.count()) + " us");
  require(options.client >= 0 && options.client <= word_limit,
          "WaitQueueOptions::client must be 0 to 2^52", std::to_string(options.client));
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
  const auto found = lines_.find(std::string(key));
  return found == lines_.end() ? 0 : found->second.queue.size() + found->second.reserved.size();
}

Word WaitQueues::client() const noexcept {
  const std::lock_guard lock(mutex_);
  return client_;
}

std::shared_ptr<QueueTicket> WaitQueues::place(Store& store, const Key& key,
                                               const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!options_.across_processes) return nullptr;
  if (client_ == 0)
    client_ = 1 + static_cast<Word>(rng_of(store.clock(), DrawFor::line).below(word_limit));
  const auto found = lines_.find(line);
  auto place = found == lines_.end() ? nullptr : found->second.place.lock();
  return place ? place : std::make_shared<QueueTicket>(store, key, client_, options_.place_ttl);
}

void WaitQueues::freed(std::string_view key) noexcept try {
  const std::string name(key);
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(name);
    if (found == lines_.end() || found->second.queue.empty()) return;
    Waiter& first = **found->second.queue.begin();
    ++found->second.freed;
    if (first.terms_.place) first.terms_.place->woken = true;
    if (first.stage_ == Waiter::Stage::resting) {
      first.stage_ = Waiter::Stage::queued;
      first.goes_on_ = true;
    }
  }
  pump(name);
} catch (const std::bad_alloc&) {
  return;  // the first in line asks again by its own timer
}

void WaitQueues::shorten(const std::string& key) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(key);
  if (found == lines_.end() || found->second.queue.empty()) return;
  found->second.last = Time{};  // an answer that was under way may have set it anew
  Waiter& first = **found->second.queue.begin();
  if (first.stage_ != Waiter::Stage::resting || first.horizon() == Span{0}) return;
  first.stage_ = Waiter::Stage::queued;
  first.goes_on_ = true;
}

void WaitQueues::cancel_all() noexcept {
  std::vector<std::shared_ptr<Waiter>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, line] : lines_) {
      all.insert(all.end(), line.queue.begin(), line.queue.end());
      all.insert(all.end(), line.reserved.begin(), line.reserved.end());
    }
  }
  // From the back: nobody moves up only to be cancelled next.
  for (auto waiter = all.rbegin(); waiter != all.rend(); ++waiter) (*waiter)->cancel();
}

bool WaitQueues::Before::operator()(const std::shared_ptr<Waiter>& a,
                                    const std::shared_ptr<Waiter>& b) const noexcept {
  return a->rank_ != b->rank_ ? a->rank_ < b->rank_ : a->arrival_ < b->arrival_;
}

std::shared_ptr<Waiter> WaitQueues::next_to_ask(Line& line) noexcept {
  for (const std::shared_ptr<Waiter>& waiter : line.queue) {
    switch (waiter->stage_) {
      case Waiter::Stage::queued:
        if (line.asking == 0) return waiter;
        return line.asking < line.at_once && waiter->may_join() ? waiter : nullptr;
      case Waiter::Stage::asking:
        break;
      default:
        return nullptr;  // refused: nobody asks before it does
    }
  }
  return nullptr;
}

/// One caller at a time asks for a line: a store that answers at once would else call itself for
/// each in the line.
void WaitQueues::pump(const std::string& key) noexcept {
  std::unique_lock lock(mutex_);
  const auto found = lines_.find(key);
  if (found == lines_.end()) return;
  Line& line = found->second;
  line.again = true;
  if (line.pumping) return;
  line.pumping = true;
  while (line.again) {
    line.again = false;
    while (const std::shared_ptr<Waiter> next = next_to_ask(line)) {
      next->stage_ = Waiter::Stage::asking;
      ++line.asking;
      lock.unlock();
      next->send();
      lock.lock();
    }
  }
  line.pumping = false;
  if (line.queue.empty() && line.reserved.empty()) lines_.erase(key);  // `found` may be stale
}

}  // namespace sluice::detail
