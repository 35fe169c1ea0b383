// Fibers, and the search through their orders.
#include "tests/linearizability/explorer.hpp"

#include <utility>

#include "tests/linearizability/explored_atoms.hpp"

namespace sluice::memory {

void interleave() noexcept {
  if (auto* const explorer = test::Explorer::current()) explorer->interleave();
}
void changed() noexcept {
  if (auto* const explorer = test::Explorer::current()) explorer->changed();
}
void pause_briefly() noexcept {
  if (auto* const explorer = test::Explorer::current()) explorer->wait();
}

}  // namespace sluice::memory

namespace sluice::test {
namespace {

constexpr std::size_t most_steps = 20'000;

}  // namespace

bool Explorer::run(const std::vector<std::function<void()>>& bodies) {
  if (!first_) {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
  }
  first_ = false;
  depth_ = spent_ = steps_ = 0;
  stuck_ = false;
  switches_.clear();
  fibers_.resize(bodies.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    Fiber& fiber = fibers_[i];
    fiber.body = &bodies[i];
    fiber.ended = fiber.waits = false;
    fiber.news = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Explorer::enter, 0);
  }
  current_ = this;
  running_ = choose(bodies.size());
  switches_.emplace_back(0, running_);
  swapcontext(&main_, &fibers_[running_].context);
  current_ = nullptr;
  return true;
}

void Explorer::enter() noexcept {
  Explorer& self = *current_;
  Fiber& mine = self.fibers_[self.running_];
  (*mine.body)();
  mine.ended = true;
  self.next();
}

/// Which of the options this run takes: as the last one did, up to where they part.
std::size_t Explorer::choose(std::size_t options) noexcept {
  if (depth_ == path_.size()) path_.push_back({0, options});
  return path_[depth_++].taken;
}

void Explorer::interleave() noexcept {
  if (++steps_ > most_steps) {
    stuck_ = true;
    swapcontext(&fibers_[running_].context, &main_);
  }
  if (spent_ == preemptions_) return;
  std::size_t ready = 0;
  for (const Fiber& fiber : fibers_) ready += !fiber.ended && !fiber.waits ? 1 : 0;
  if (ready < 2) return;
  std::size_t taken = choose(ready);  // 0: go on
  if (taken == 0) return;
  ++spent_;
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (i == running_ || fibers_[i].ended || fibers_[i].waits) continue;
    if (--taken == 0) return go_on(i);
  }
}

void Explorer::wait() noexcept {
  Fiber& mine = fibers_[running_];
  // What it waits for may have come while it was looking: it looks again first.
  if (std::exchange(mine.news, false)) return;
  mine.waits = true;
  next();
}

void Explorer::changed() noexcept {
  for (Fiber& fiber : fibers_) {
    fiber.waits = false;
    fiber.news = fiber.news || &fiber != &fibers_[running_];
  }
}

/// Goes on with any other thread, since this one cannot.
void Explorer::next() noexcept {
  std::vector<std::size_t> ready;
  bool all_ended = true;
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (!fibers_[i].ended && !fibers_[i].waits) ready.push_back(i);
    all_ended = all_ended && fibers_[i].ended;
  }
  if (!ready.empty()) return go_on(ready[ready.size() == 1 ? 0 : choose(ready.size())]);
  stuck_ = !all_ended;
  // NOTE: destructors of `ready` do not run when a run is given up; it is empty then.
  swapcontext(&fibers_[running_].context, &main_);
}

void Explorer::go_on(std::size_t thread) noexcept {
  ucontext_t& from = fibers_[running_].context;
  running_ = thread;
  switches_.emplace_back(steps_, thread);
  swapcontext(&from, &fibers_[thread].context);
}

std::string Explorer::order() const {
  std::string result;
  for (const auto& [step, thread] : switches_) {
    result += (result.empty() ? "" : ", ") + std::string("step ") + std::to_string(step) +
              ": thread " + std::to_string(thread);
  }
  return result;
}

}  // namespace sluice::test
