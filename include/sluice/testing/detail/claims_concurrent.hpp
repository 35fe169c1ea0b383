// Claims about many callers at once. Time passes meanwhile on a real store, so the bounds count
// what may have come back between the first and the last decision.
// Threading: starts ConformanceOptions::threads callers, and joins them.
#pragma once

#include <mutex>
#include <thread>

#include "sluice/testing/detail/claims_plan.hpp"

namespace sluice::testing::detail {

/// What several callers were answered.
struct Tally {
  Wide admitted = 0;
  Time first = Time::max();
  Time last = Time::min();
  std::string failure;

  void count(const Decision& decision, Word cost) {
    if (decision.allowed) admitted += cost;
    first = std::min(first, decision.at);
    last = std::max(last, decision.at);
  }
  void add(const Tally& other) {
    admitted += other.admitted;
    first = std::min(first, other.first);
    last = std::max(last, other.last);
    if (!other.failure.empty()) failure = other.failure;
  }
};

/// Runs `caller(its draws, its tally)` on every thread and adds up.
template <class Caller>
Tally run_callers(Context& context, Caller caller) {
  Tally total;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < context.threads(); ++i) {
    threads.emplace_back([&, seed = context.rng().next()] {
      SeededRng rng(seed);
      Tally own;
      try {
        caller(rng, own);
      } catch (const Mismatch& mismatch) {
        own.failure = mismatch.text;
      }
      const std::lock_guard lock(mutex);
      total.add(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  require(total.failure.empty(), total.failure);
  return total;
}

/// All callers use one key, half of the calls through its binding, if it has one.
inline void share_one_key(Context& context, const Operation& row, Subject& subject,
                          std::size_t calls) {
  const Tally tally = run_callers(context, [&](Rng& rng, Tally& own) {
    for (std::size_t i = 0; i < calls; ++i) {
      Step step = subject.step(row, 1);
      if (rng.below(2) == 0) step.binding = nullptr;
      own.count(ask_one(context.store(), step), 1);
    }
  });
  const Word us = (tally.last - tally.first).count();
  const Wide most = subject.generator->most(subject.config, us);
  const Wide asked = static_cast<Wide>(calls) * context.threads();
  const auto number = [](Wide value) { return std::to_string(static_cast<Word>(value)); };
  require(tally.admitted <= most, number(tally.admitted) + " admitted in " + std::to_string(us) +
                                      " us, at most " + number(most) + " fit the quota");
  const Wide least = std::min<Wide>(asked, subject.config[0]);
  require(tally.admitted >= least, "only " + number(tally.admitted) + " admitted of " +
                                       number(asked) + " asked, " + number(least) + " were there");
}

inline void concurrent_callers_share(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::size_t calls = context.scaled(500);
    for (int round = 0; round < 4; ++round) {
      const Word limit = round % 2 == 0 ? 1 + Word(context.rng().below(3)) : 600;
      Subject subject(context.fresh_tag(), "k", generator, generator.frozen(limit));
      if (round >= 2) bind(context.store(), subject);
      share_one_key(context, row, subject, calls);
    }
    for (int round = 0; round < 4; ++round) {
      Subject subject(context.fresh_tag(), "k", generator, generator.any(context.rng()));
      if (round >= 2) bind(context.store(), subject);
      share_one_key(context, row, subject, calls);
    }
  });
}

inline std::string units(Wide count) { return std::to_string(static_cast<Word>(count)); }

/// Plans over a shared key with plenty and a scarce one, in both orders. What is gone from the
/// plentiful key at the end must be what the admitted plans asked for: a refused plan that took
/// something, or an admitted one that did not, shows.
inline void concurrent_plans_are_atomic(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::string tag = context.fresh_tag();
    const std::size_t calls = context.scaled(200);
    Subject plenty(tag, "plenty", generator, generator.frozen(2000));
    Subjects scarce;
    for (int i = 0; i < 3; ++i) {
      scarce.emplace_back(tag, "scarce" + std::to_string(i), generator, generator.frozen(40));
    }
    const Tally tally = run_callers(context, [&](Rng& rng, Tally& own) {
      for (std::size_t i = 0; i < calls; ++i) {
        Subject& other = scarce[rng.below(scarce.size())];
        std::array<Step, 2> steps{plenty.step(row, 1), other.step(row, 1)};
        if (rng.below(2) == 0) std::swap(steps[0], steps[1]);
        const Answered answered = ask(context.store(), steps);
        require(!answered.error, "error \"" + answered.error.message() + "\"");
        own.count(answered.decision, 1);
      }
    });
    Word taken = 0;
    for (Subject& subject : scarce) {
      taken += 40 - ask_one(context.store(), subject.step(row, 0)).remaining;
    }
    const Word left = ask_one(context.store(), plenty.step(row, 0)).remaining;
    require(tally.admitted == taken, units(tally.admitted) + " plans were admitted, " +
                                         units(taken) + " units left the scarce keys");
    require(tally.admitted == 2000 - left, units(tally.admitted) + " plans were admitted, " +
                                               units(2000 - left) + " units left the shared key");
  });
}

}  // namespace sluice::testing::detail
