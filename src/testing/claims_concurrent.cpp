// Claims about concurrent callers. On a real store time passes meanwhile, so that the bounds
// include what is refilled between the first and the last decision. Threading: starts
// ConformanceOptions::threads callers, and joins them.
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

/// The sum of the answers of several callers.
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

/// Runs `caller(its rng, its tally)` on every thread and adds up the tallies.
template <class Caller>
Tally run_callers(Context& context, Caller caller) {
  Tally total;
  std::mutex mutex;
  std::atomic<bool> started{
      false};  // all start together; otherwise the first may finish before the last starts
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < context.threads(); ++i) {
    threads.emplace_back([&, seed = context.rng().next()] {
      SeededRng rng(seed);
      Tally own;
      started.wait(false);
      try {
        caller(rng, own);
      } catch (const Mismatch& mismatch) {
        own.failure = mismatch.text;
      }
      const std::lock_guard lock(mutex);
      total.add(own);
    });
  }
  started = true;
  started.notify_all();
  for (std::thread& thread : threads) thread.join();
  require(total.failure.empty(), total.failure);
  return total;
}

/// All callers use one key, half of the calls through its binding, if it has one. `least`: the
/// least number of calls that must be admitted.
void share_one_key(Context& context, Subject& subject, std::size_t calls, Wide least) {
  const Tally tally = run_callers(context, [&](Rng& rng, Tally& own) {
    for (std::size_t i = 0; i < calls; ++i) {
      Step step = subject.acquire(1);
      if (rng.below(2) == 0) step.binding = nullptr;
      own.count(ask_one(context.store(), step), 1);
    }
  });
  const Word us = (tally.last - tally.first).count();
  const Wide most = subject.generator->spender->most(subject.config, us);
  const auto number = [](Wide value) { return std::to_string(static_cast<Word>(value)); };
  const std::string what = std::string(subject.generator->spender->acquire->name) + ": ";
  require(tally.admitted <= most, what + number(tally.admitted) + " admitted in " +
                                      std::to_string(us) + " us, at most " + number(most) +
                                      " fit the quota");
  require(tally.admitted >= least,
          what + "only " + number(tally.admitted) + " admitted, " + number(least) + " were there");
}

std::string units(Wide count) { return std::to_string(static_cast<Word>(count)); }

/// Plans over a plentiful key and a scarce one of another kind, in both orders. The units missing
/// from the plentiful key at the end must be those of the admitted plans: this detects a refused
/// plan that took something, or an admitted one that did not.
void share_plans(Context& context, const Generator& of_plenty, const Generator& of_scarce) {
  const std::string tag = context.fresh_tag();
  const std::size_t calls = context.scaled(200);
  Subject plenty(tag, "plenty", of_plenty, of_plenty.spender->frozen(2000));
  Subjects scarce;
  for (int i = 0; i < 3; ++i) {
    scarce.emplace_back(tag, "scarce" + std::to_string(i), of_scarce,
                        of_scarce.spender->frozen(40));
  }
  const Tally tally = run_callers(context, [&](Rng& rng, Tally& own) {
    for (std::size_t i = 0; i < calls; ++i) {
      Subject& other = scarce[rng.below(scarce.size())];
      std::array<Step, 2> steps{plenty.acquire(1), other.acquire(1)};
      if (rng.below(2) == 0) std::swap(steps[0], steps[1]);
      const Answered answered = ask(context.store(), steps);
      require(!answered.error, describe(answered.error));
      own.count(answered.decision, 1);
    }
  });
  Word taken = 0;
  for (Subject& subject : scarce) {
    taken += 40 - ask_one(context.store(), subject.peek(0)).remaining;
  }
  const Word left = ask_one(context.store(), plenty.peek(0)).remaining;
  require(tally.admitted == taken, units(tally.admitted) + " plans were admitted, " + units(taken) +
                                       " units left the scarce keys");
  require(tally.admitted == 2000 - left, units(tally.admitted) + " plans were admitted, " +
                                             units(2000 - left) + " units left the shared key");
}

}  // namespace

void concurrent_callers_share(Context& context) {
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    const std::size_t calls = context.scaled(500);
    const Wide asked = static_cast<Wide>(calls) * context.threads();
    for (int round = 0; round < 4; ++round) {
      const Word limit = round % 2 == 0 ? 1 + Word(context.rng().below(3)) : 600;
      Subject subject(context.fresh_tag(), "k", generator, spender.frozen(limit));
      if (round >= 2) bind(context.store(), subject);
      share_one_key(context, subject, calls, std::min<Wide>(asked, limit));
    }
    for (int round = 0; round < 4; ++round) {
      Subject subject(context.fresh_tag(), "k", generator, generator.any(context.rng()));
      if (round >= 2) bind(context.store(), subject);
      share_one_key(context, subject, calls, 1);
    }
  });
}

/// Each kind with itself and with the next kind.
void concurrent_plans_are_atomic(Context& context) {
  std::vector<const Generator*> spenders;
  for_each_spender([&](const Generator& g, const Spender& /*s*/) { spenders.push_back(&g); });
  for (std::size_t i = 0; i < spenders.size(); ++i) {
    share_plans(context, *spenders[i], *spenders[i]);
    if (spenders.size() > 1) {
      share_plans(context, *spenders[i], *spenders[(i + 1) % spenders.size()]);
    }
  }
}

/// Every caller has its own keys, of every kind, and is answered as if it were alone.
void concurrent_callers_are_apart(Context& context) {
  const std::size_t calls = context.scaled(400);
  std::atomic<unsigned> serial{0};
  const std::string tag = context.fresh_tag();
  run_callers(context, [&](Rng& rng, Tally& /*own*/) {
    const std::string caller = std::to_string(serial.fetch_add(1)) + "-";
    Subjects subjects;
    for (const Generator& generator : generators()) {
      subjects.emplace_back(tag, caller + std::to_string(subjects.size()), generator,
                            generator.any(rng));
    }
    for (std::size_t i = 0; i < calls; ++i) {
      Subject& subject = subjects[rng.below(subjects.size())];
      step_once(context.store(), subject, subject.draw(rng));
    }
  });
}

}  // namespace sluice::testing::detail
