// Claims that move the clock of the store; they need ConformanceOptions::clock.
#include <algorithm>
#include <array>
#include <chrono>

#include "src/testing/claims.hpp"
#include "src/testing/subjects.hpp"

namespace sluice::testing::detail {
namespace {

void go(Context& context, Time time) { context.clock().set(time); }

/// A key in use, and how long its state counts.
Word put_in_use(Context& context, Subject& subject) {
  const Step step = subject.generator->spender != nullptr ? subject.acquire(subject.config.args[0])
                                                          : plain_step(context, subject);
  step_once(context.store(), subject, step);
  return step.operation->ttl(step.args);
}

}  // namespace

/// Without other requests, a refused request is refused 1 us before `at + retry_after` and admitted
/// at it.
void hints_are_exact(Context& context) {
  const std::size_t rounds = context.scaled(std::max<std::size_t>(100, 500 / generators().size()));
  const Time start = context.clock().now();
  for_each_kind([&](const Generator& generator) {
    for (std::size_t round = 0; round < rounds; ++round) {
      go(context, start);
      Subject subject(context.fresh_tag(), "k", generator, generator.any(context.rng()));
      Step step = subject.draw(context.rng());
      const Decision last = draw_refusal(context, subject, step);
      if (last.allowed || last.at + last.retry_after > to_time(word_limit)) continue;
      const Time due = last.at + last.retry_after;
      go(context, due - Span{1});
      const Decision early = step_once(context.store(), subject, step);
      require(!early.allowed && early.retry_after == Span{1},
              describe(step) + ": 1 us before the hint " + describe(early));
      go(context, due);
      const Decision on_time = step_once(context.store(), subject, step);
      require(on_time.allowed, describe(step) + ": at the hint " + describe(on_time));
    }
  });
  go(context, start);
}

/// Moves forwards and backwards, within a quarter of the state's TTL, so that no store may have
/// dropped it.
void clock_set_back(Context& context) {
  const std::size_t rounds = context.scaled(60);
  const Time start = context.clock().now() + std::chrono::hours{1};
  const auto walk = [&](const Generator& generator, const Spender& spender) {
    go(context, start);
    Subject subject(context.fresh_tag(), "k", generator, spender.slow(context.rng()));
    for (int i = 0; i < 60; ++i) {
      step_once(context.store(), subject, subject.draw(context.rng()));
      constexpr Word ahead = 60'000'000;  // how far a rule follows a stamp ahead of the clock
      const std::array<Word, 6> moves{1'000, -1'000, -ahead, -ahead - 1, ahead, ahead + 1};
      Span move{moves[context.rng().below(moves.size())]};
      if (context.one_in(2)) move = Span{context.between(-90'000'000, 90'000'000)};
      const Time to = context.clock().now() + move;
      const Span far = std::chrono::minutes{14};
      if (to > start - far && to < start + far) go(context, to);
    }
  };
  for_each_spender([&](const Generator& generator, const Spender& spender) {
    for (std::size_t round = 0; round < rounds; ++round) walk(generator, spender);
  });
  go(context, start);
}

/// On either side of the time from which a state is equivalent to an absent one.
void states_are_kept(Context& context) {
  const std::size_t rounds = context.scaled(std::max<std::size_t>(20, 100 / generators().size()));
  const Time start = context.clock().now();
  const auto live = [&](const Generator& generator) {
    go(context, start);
    Subjects subjects;
    std::vector<Word> keeps;
    for (int i = 0; i < 20; ++i) {  // enough for a store to drop expired states
      subjects.emplace_back(context.fresh_tag(), "k", generator, generator.any(context.rng()));
      keeps.push_back(put_in_use(context, subjects.back()));
    }
    const Word keep = keeps[context.rng().below(keeps.size())];
    for (const Word after : {keep / 4, keep / 2, keep - 60'000'001, keep - 1, keep, keep + 1}) {
      if (after < 0 || start + Span{after} > to_time(word_limit)) continue;
      if (start + Span{after} < context.clock().now()) continue;
      go(context, start + Span{after});
      for (Subject& subject : subjects) {
        const bool spends = generator.spender != nullptr;
        step_once(context.store(), subject, spends ? subject.peek(0) : subject.draw(context.rng()));
      }
    }
  };
  for_each_kind([&](const Generator& generator) {
    for (std::size_t round = 0; round < rounds; ++round) live(generator);
  });
  go(context, start);
}

}  // namespace sluice::testing::detail
