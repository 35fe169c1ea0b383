// A Resource against a model that is too simple to be wrong, under random callers, releases,
// deadlines, cancellations and numbers of servers. Threading: single-threaded.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <deque>
#include <map>
#include <set>

#include "sim/tests/world/fixture.hpp"
#include "sluice/sim/resource.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Action {
  enum class Kind { acquire, release, cancel, set_servers };
  Time at;
  Kind kind;
  std::uint64_t draw;  // which one is released or cancelled, how many servers
  AcquireOptions options;
};

struct Answer {
  bool served;
  Time at;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// The answers by caller, and the sums of the statistics.
struct Result {
  std::map<std::size_t, Answer> answers;
  std::uint64_t busy_time = 0;
  std::uint64_t waiting_time = 0;
  std::uint64_t served = 0;
  std::uint64_t abandoned = 0;
  friend bool operator==(const Result&, const Result&) = default;
};

/// One action at an instant; deadlines prefer the instants of later actions.
std::vector<Action> draw_actions(test::Random& random, Time start) {
  std::vector<Action> actions(400);
  Time at = start;
  for (Action& action : actions) {
    at += Span{random.between(1, 4)};
    action.at = at;
    action.draw = random.next();
    const std::int64_t kind = random.between(0, 9);
    action.kind = kind < 5    ? Action::Kind::acquire
                  : kind < 8  ? Action::Kind::release
                  : kind == 8 ? Action::Kind::cancel
                              : Action::Kind::set_servers;
  }
  for (std::size_t i = 0; i < actions.size(); ++i) {
    AcquireOptions& options = actions[i].options;
    options.priority = static_cast<int>(random.between(-2, 2));
    const auto later = static_cast<std::size_t>(random.between(0, 30));
    if (random.one_in(2)) options.deadline = actions[std::min(i + later, actions.size() - 1)].at;
  }
  return actions;
}

class Model {
 public:
  Model(std::size_t servers, Discipline discipline) : servers_(servers), discipline_(discipline) {}

  Result run(const std::vector<Action>& actions) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      expire(actions[i].at);
      act(i, actions[i]);
      serve(actions[i].at);
    }
    const Time end = actions.back().at;
    for (const Waiter& waiter : waiters_) add(result_.waiting_time, waiter.since, end);
    for (const auto& [name, since] : held_) add(result_.busy_time, since, end);
    return result_;
  }

 private:
  struct Waiter {
    std::size_t name;
    Time since;
    AcquireOptions options;
  };
  using Place = std::vector<Waiter>::iterator;

  static void add(std::uint64_t& sum, Time from, Time to) {
    sum += static_cast<std::uint64_t>((to - from).count());
  }
  void leave(Place waiter, Time now, bool served) {
    add(result_.waiting_time, waiter->since, now);
    result_.answers[waiter->name] = {served, now};
    ++(served ? result_.served : result_.abandoned);
    if (served) held_[waiter->name] = now;
    waiters_.erase(waiter);
  }
  void expire(Time now) {
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      if (waiter->options.deadline > now) {
        ++waiter;
      } else {
        leave(waiter, waiter->options.deadline, false);
        waiter = waiters_.begin();
      }
    }
  }
  void act(std::size_t name, const Action& action) {
    const auto pick = [&](std::size_t size) {
      return static_cast<std::ptrdiff_t>(action.draw % size);
    };
    switch (action.kind) {
      case Action::Kind::acquire:
        waiters_.push_back({name, action.at, action.options});
        if (action.options.deadline <= action.at && held_.size() >= servers_) {
          leave(waiters_.end() - 1, action.at, false);
        }
        break;
      case Action::Kind::release:
        if (held_.empty()) break;
        {
          const auto held = std::next(held_.begin(), pick(held_.size()));
          add(result_.busy_time, held->second, action.at);
          held_.erase(held);
        }
        break;
      case Action::Kind::cancel:
        if (!waiters_.empty()) {
          leave(waiters_.begin() + pick(waiters_.size()), action.at, false);
        }
        break;
      case Action::Kind::set_servers:
        servers_ = action.draw % 5;
        break;
    }
  }
  void serve(Time now) {
    while (held_.size() < servers_ && !waiters_.empty()) {
      auto next = waiters_.begin();
      for (auto waiter = next; waiter != waiters_.end(); ++waiter) {
        if (discipline_ == Discipline::priority &&
            waiter->options.priority > next->options.priority) {
          next = waiter;
        }
      }
      leave(next, now, true);
    }
  }

  std::size_t servers_;
  Discipline discipline_;
  std::vector<Waiter> waiters_;       // in the order of coming
  std::map<std::size_t, Time> held_;  // by name
  Result result_;
};

class Real {
 public:
  Real(std::size_t servers, Discipline discipline, std::uint64_t seed)
      : world_({.seed = seed, .shuffle_ties = true}), resource_(world_, servers, discipline) {}

  Result run(const std::vector<Action>& actions) {
    signals_.resize(actions.size());
    for (std::size_t i = 0; i < actions.size(); ++i) {
      sluice::asio::sleep_until(world_.clock(), actions[i].at, [&, i](Error) {
        if (actions[i].kind == Action::Kind::cancel) settle_deadlines(actions[i].at);
        act(i, actions[i]);
      });
    }
    world_.run_until(actions.back().at);
    const ResourceStats stats = resource_.stats();
    result_.busy_time = stats.busy_time;
    result_.waiting_time = stats.waiting_time;
    result_.served = stats.served;
    result_.abandoned = stats.abandoned;
    CHECK(stats.waiting == waiting_.size());
    CHECK(stats.busy == held_.size());
    return result_;
  }

 private:
  /// A waiter whose deadline is now may be cancelled or not: its answer is the same, but the model
  /// does not choose it.
  void settle_deadlines(Time now) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      it = it->second <= now ? waiting_.erase(it) : std::next(it);
    }
  }

  void act(std::size_t name, const Action& action) {
    switch (action.kind) {
      case Action::Kind::acquire:
        waiting_[name] = action.options.deadline;
        resource_.acquire(action.options,
                          net::bind_cancellation_slot(
                              signals_[name].slot(), [this, name](Resource::Server server) {
                                waiting_.erase(name);
                                result_.answers[name] = {!!server, world_.now()};
                                if (server) held_.emplace(name, std::move(server));
                              }));
        break;
      case Action::Kind::release:
        if (held_.empty()) break;
        held_.erase(
            std::next(held_.begin(), static_cast<std::ptrdiff_t>(action.draw % held_.size())));
        break;
      case Action::Kind::cancel:
        if (waiting_.empty()) break;
        signals_[std::next(waiting_.begin(),
                           static_cast<std::ptrdiff_t>(action.draw % waiting_.size()))
                     ->first]
            .emit(net::cancellation_type::terminal);
        break;
      case Action::Kind::set_servers:
        resource_.set_servers(action.draw % 5);
        break;
    }
  }

  World world_;
  std::deque<net::cancellation_signal> signals_;
  Result result_;
  Resource resource_;
  std::map<std::size_t, Time> waiting_;  // the deadlines by name
  std::map<std::size_t, Resource::Server> held_;
};

}  // namespace

TEST_CASE("a Resource does what a simple model of it does") {
  test::Random random("a Resource does what a simple model of it does");
  CAPTURE(random.repeat());
  std::uint64_t served = 0;
  std::uint64_t abandoned = 0;
  const std::size_t rounds = test::scaled(200, 20);
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto discipline = random.one_in(2) ? Discipline::fifo : Discipline::priority;
    const auto servers = static_cast<std::size_t>(random.between(0, 4));
    const auto actions = draw_actions(random, VirtualClock::default_start);
    const Result expected = Model(servers, discipline).run(actions);
    const Result result = Real(servers, discipline, random.next()).run(actions);
    REQUIRE(result.answers == expected.answers);
    REQUIRE(result == expected);
    served += result.served;
    abandoned += result.abandoned;
  }
  CHECK(served > rounds * 50);
  CHECK(abandoned > rounds * 20);
}
