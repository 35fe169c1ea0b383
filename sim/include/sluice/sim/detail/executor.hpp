// The executor of a World. Threading: the thread of the World.
#pragma once

#include <boost/asio/execution/allocator.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/mapping.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/sim/detail/loop.hpp"

namespace sluice::sim {

/// Runs functions in a World, as boost::asio::io_context's executor does in an io_context: with the
/// properties blocking (possibly, never), relationship, outstanding_work, allocator and context.
/// Inside the World's run loop, a function with blocking.possibly runs at once; all others are
/// queued for the current instant. Throws std::logic_error if the World is running on another
/// thread. REQUIRES: the World exists.
template <class Allocator, bool tracked>
class WorldExecutor {
  using Blocking = boost::asio::execution::blocking_t;
  using Relationship = boost::asio::execution::relationship_t;
  using Work = boost::asio::execution::outstanding_work_t;
  template <class A, bool t>
  using Like = WorldExecutor<A, t>;

 public:
  WorldExecutor(detail::Loop& loop, const Allocator& allocator, bool never, bool continues) noexcept
      : loop_(&loop), never_(never), continues_(continues), allocator_(allocator) {
    begin();
  }
  WorldExecutor(const WorldExecutor& other) noexcept
      : WorldExecutor(*other.loop_, other.allocator_, other.never_, other.continues_) {}
  WorldExecutor& operator=(const WorldExecutor& other) noexcept {
    if (tracked) other.loop_->work_started();
    end();
    loop_ = other.loop_;
    never_ = other.never_;
    continues_ = other.continues_;
    allocator_ = other.allocator_;
    return *this;
  }
  ~WorldExecutor() { end(); }

  [[nodiscard]] auto require(Blocking::possibly_t) const noexcept {
    return WorldExecutor(*loop_, allocator_, false, continues_);
  }
  [[nodiscard]] auto require(Blocking::never_t) const noexcept {
    return WorldExecutor(*loop_, allocator_, true, continues_);
  }
  [[nodiscard]] auto require(Relationship::fork_t) const noexcept {
    return WorldExecutor(*loop_, allocator_, never_, false);
  }
  [[nodiscard]] auto require(Relationship::continuation_t) const noexcept {
    return WorldExecutor(*loop_, allocator_, never_, true);
  }
  [[nodiscard]] auto require(Work::tracked_t) const noexcept {
    return Like<Allocator, true>(*loop_, allocator_, never_, continues_);
  }
  [[nodiscard]] auto require(Work::untracked_t) const noexcept {
    return Like<Allocator, false>(*loop_, allocator_, never_, continues_);
  }
  template <class Other>
  [[nodiscard]] auto require(boost::asio::execution::allocator_t<Other> a) const noexcept {
    return Like<Other, tracked>(*loop_, a.value(), never_, continues_);
  }
  [[nodiscard]] auto require(boost::asio::execution::allocator_t<void>) const noexcept {
    return Like<std::allocator<void>, tracked>(*loop_, {}, never_, continues_);
  }

  [[nodiscard]] static constexpr auto query(boost::asio::execution::mapping_t) noexcept {
    return boost::asio::execution::mapping_t(boost::asio::execution::mapping.thread);
  }
  [[nodiscard]] static constexpr auto query(Work) noexcept {
    if constexpr (tracked) return Work(boost::asio::execution::outstanding_work.tracked);
    return Work(boost::asio::execution::outstanding_work.untracked);
  }
  [[nodiscard]] boost::asio::execution_context& query(
      boost::asio::execution::context_t) const noexcept {
    return loop_->context();
  }
  [[nodiscard]] Blocking query(Blocking) const noexcept {
    return never_ ? Blocking(boost::asio::execution::blocking.never)
                  : Blocking(boost::asio::execution::blocking.possibly);
  }
  [[nodiscard]] Relationship query(Relationship) const noexcept {
    return continues_ ? Relationship(boost::asio::execution::relationship.continuation)
                      : Relationship(boost::asio::execution::relationship.fork);
  }
  template <class Other>
  [[nodiscard]] Allocator query(boost::asio::execution::allocator_t<Other>) const noexcept {
    return allocator_;
  }

  /// True inside a function that the World runs.
  [[nodiscard]] bool running_in_this_thread() const noexcept { return loop_->running_here(); }

  /// True if execute() would run a function at once.
  [[nodiscard]] bool runs_at_once() const noexcept { return !never_ && loop_->running_here(); }

  /// Exceptions of the function leave World::run(), also if it runs at once.
  template <class Function>
  void execute(Function&& function) const {
    if (!runs_at_once()) {
      loop_->post(std::forward<Function>(function), allocator_);
      return;
    }
    try {
      std::decay_t<Function> own(std::forward<Function>(function));
      own();
    } catch (...) {
      loop_->capture_exception();
    }
  }

  friend bool operator==(const WorldExecutor& a, const WorldExecutor& b) noexcept {
    return a.loop_ == b.loop_ && a.never_ == b.never_ && a.continues_ == b.continues_ &&
           a.allocator_ == b.allocator_;
  }

 private:
  void begin() noexcept {
    if (tracked) loop_->work_started();
  }
  void end() noexcept {
    if (tracked) loop_->work_finished();
  }

  detail::Loop* loop_;
  bool never_;
  bool continues_;
  [[no_unique_address]] Allocator allocator_;
};

}  // namespace sluice::sim
