#include "sluice/sim/resource.hpp"

#include <boost/intrusive/set.hpp>
#include <stdexcept>
#include <string>

namespace sluice::sim::detail {

struct ResourceWait::Before {
  bool operator()(const ResourceWait& a, const ResourceWait& b) const noexcept {
    return a.priority_ > b.priority_;
  }
};

/// Equal priorities stay in the order of insertion.
struct ResourceCore::ByPriority
    : boost::intrusive::multiset<ResourceWait, boost::intrusive::base_hook<PriorityHook>,
                                 boost::intrusive::compare<ResourceWait::Before>,
                                 boost::intrusive::constant_time_size<false>> {};

void ResourceWait::cancel() noexcept {
  if (state_ == State::waiting) core_.cancel(*this);
}

bool ResourceWait::take_grant() noexcept {
  if (state_ == State::waiting) core_.abandon(*this);  // the event of its deadline
  return state_ == State::granted;
}

ResourceCore::ResourceCore(World& world, std::size_t servers, Discipline discipline)
    : world_(&world), since_(world.now()), tallied_(since_) {
  stats_.servers = checked(servers);
  if (discipline == Discipline::priority) by_priority_ = std::make_unique<ByPriority>();
  world.resources_.next()->push_back(*this);
}

ResourceCore::~ResourceCore() = default;

std::size_t ResourceCore::checked(std::size_t servers) {
  if (servers <= Resource::max_servers) return servers;
  throw std::invalid_argument("a Resource has 0 to 2^31 servers, got " + std::to_string(servers));
}

World& ResourceCore::world() const {
  if (world_ == nullptr) throw std::logic_error("a Resource was used after the end of its World");
  return *world_;
}

/// Brings the sums up to the present instant, before a change.
void ResourceCore::tally() noexcept {
  if (world_ == nullptr) return;
  const Time now = world_->now();
  if (now == tallied_) return;
  const auto span = static_cast<std::uint64_t>((now - tallied_).count());
  tallied_ = now;
  stats_.server_time += span * stats_.servers;
  stats_.busy_time += span * stats_.busy;
  stats_.waiting_time += span * stats_.waiting;
}

ResourceStats ResourceCore::stats() noexcept {
  tally();
  stats_.elapsed = tallied_ - since_;
  return stats_;
}

void ResourceCore::reset_stats() noexcept {
  tally();
  since_ = tallied_;
  ResourceStats fresh;
  fresh.servers = stats_.servers;
  fresh.busy = stats_.busy;
  fresh.waiting = stats_.waiting;
  stats_ = fresh;
}

void ResourceCore::begin(ResourceWait& wait) {
  LoopClock& clock = world().clock_;
  tally();
  // If a server is free, nobody waits.
  if (stats_.busy < stats_.servers) return grant(wait);
  if (wait.deadline_ <= world_->now()) {
    clock.finish_soon(wait);
    wait.state_ = ResourceWait::State::ended;
    ++stats_.abandoned;
    return;
  }
  if (to_word(wait.deadline_) <= word_limit) clock.set(wait, wait.deadline_);
  enqueue(wait);
}

bool ResourceCore::try_begin() {
  (void)world();
  tally();
  const bool is_free = stats_.busy < stats_.servers;
  ++(is_free ? stats_.served : stats_.abandoned);
  if (is_free) ++stats_.busy;
  return is_free;
}

void ResourceCore::grant(ResourceWait& wait) {
  world_->clock_.finish_soon(wait);
  wait.state_ = ResourceWait::State::granted;
  ++stats_.busy;
  ++stats_.served;
}

void ResourceCore::release() noexcept {
  tally();
  --stats_.busy;
  if (stats_.busy == 0 && !owned_) {
    delete this;
    return;
  }
  serve();
}

void ResourceCore::set_servers(std::size_t servers) {
  (void)world();
  tally();
  stats_.servers = checked(servers);
  serve();
}

void ResourceCore::serve() noexcept {
  if (world_ == nullptr) return;
  while (stats_.busy < stats_.servers && stats_.waiting != 0) {
    ResourceWait& wait = first();
    if (wait.deadline_ <= world_->now()) {
      abandon(wait);  // the event of its deadline is due, and completes it
      continue;
    }
    dequeue(wait);
    (void)world_->clock_.cancel(wait);
    grant(wait);
  }
}

void ResourceCore::abandon(ResourceWait& wait) noexcept {
  tally();
  dequeue(wait);
  wait.state_ = ResourceWait::State::ended;
  ++stats_.abandoned;
}

void ResourceCore::cancel(ResourceWait& wait) noexcept {
  abandon(wait);
  (void)world_->clock_.cancel(wait);
  world_->clock_.finish_soon(wait);
}

void ResourceCore::leave_resource() noexcept {
  while (stats_.waiting != 0) cancel(first());
  owned_ = false;
  if (stats_.busy == 0) delete this;
}

void ResourceCore::leave_world() noexcept {
  while (stats_.waiting != 0) cancel(first());
  unlink();
  world_ = nullptr;
}

void ResourceCore::enqueue(ResourceWait& wait) noexcept {
  ++stats_.waiting;
  if (by_priority_) {
    by_priority_->insert(wait);
  } else {
    line_.push_back(wait);
  }
}

void ResourceCore::dequeue(ResourceWait& wait) noexcept {
  --stats_.waiting;
  if (by_priority_) {
    by_priority_->erase(by_priority_->iterator_to(wait));
  } else {
    static_cast<sluice::asio::detail::Link&>(wait).unlink();
  }
}

ResourceWait& ResourceCore::first() noexcept {
  if (by_priority_) return *by_priority_->begin();
  return static_cast<ResourceWait&>(*line_.next());
}

}  // namespace sluice::sim::detail
