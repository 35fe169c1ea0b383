// Random arguments for the rows of the table of operations: one generator for each kind of state.
// A new algorithm adds its generator here, and every claim then covers its rows.
// Threading: pure functions.
#pragma once

#include <array>
#include <numeric>
#include <span>

#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/rng.hpp"

namespace sluice::testing::detail {

__extension__ typedef __int128 Wide;  // products of words

/// From [1, 2^bits), each length in bits as likely as any other.
inline Word log_uniform(Rng& rng, unsigned bits) {
  const auto length = 1 + rng.below(bits);
  const auto top = std::uint64_t{1} << (length - 1);
  return static_cast<Word>(top + rng.below(top));
}

/// Any quota that can be built, extreme ones as likely as everyday ones.
inline Quota random_quota(Rng& rng) {
  if (rng.below(2) == 0) {
    const Word rate = log_uniform(rng, 20);
    return Quota::per_second(rate).burst(log_uniform(rng, 10));
  }
  for (;;) {
    const Word count = log_uniform(rng, 52);
    const Word period = log_uniform(rng, 52);
    const Word common = std::gcd(count, period);
    const Word largest = (word_limit - count / common) / (period / common);
    if (largest < 1) continue;
    const auto bits = static_cast<unsigned>(64 - __builtin_clzll(std::uint64_t(largest)));
    const Word burst = rng.below(4) == 0 ? largest : std::min(largest, log_uniform(rng, bits));
    return Quota::per(count, Span{period}).burst(burst);
  }
}

/// How the arguments of one kind of rule are drawn. A configuration is all but the part of a call.
struct Generator {
  StateKind kind;
  /// Any configuration that the rule accepts.
  Arguments (*any)(Rng&);
  /// `limit` units, of which less than one comes back in a day. REQUIRES: limit in [1, 2000].
  Arguments (*frozen)(Word limit);
  /// A configuration that takes at least an hour to recover, and refuses soon.
  Arguments (*slow)(Rng&);
  /// Sets what one call asks for.
  void (*ask)(Arguments&, Word units);
  /// Draws what one call asks for; it can be admitted.
  void (*draw)(Rng&, Arguments&);
  /// What can never be admitted under this configuration, for trial 0, 1, 2...; false past the end.
  bool (*impossible)(Arguments&, std::size_t trial);
  /// The most units that may be admitted within `us` microseconds.
  Wide (*most)(const Arguments&, Word us);
};

namespace token_bucket {

inline Arguments pack(const Quota& quota) {
  Arguments args{};
  sluice::detail::pack(args, TokenBucketRule::args(quota, 1));
  return args;
}
inline Arguments any(Rng& rng) { return pack(random_quota(rng)); }
inline Arguments frozen(Word limit) {
  return pack(Quota::per(1, std::chrono::days{2}).burst(limit));
}
inline Arguments slow(Rng& rng) {
  const auto period = static_cast<Word>(1'000'000 + rng.below(1'000'000'000));
  const auto burst = static_cast<Word>(3'600'000'000 / period + 1 + Word(rng.below(20)));
  return pack(Quota::per(1, Span{period}).burst(burst));
}
inline void ask(Arguments& args, Word units) { args[4] = units; }
inline void draw(Rng& rng, Arguments& args) {
  const Word capacity = args[0];
  const auto bits = static_cast<unsigned>(64 - __builtin_clzll(std::uint64_t(capacity)));
  switch (rng.below(8)) {
    case 0:
      return ask(args, 0);
    case 1:
      return ask(args, capacity);
    case 2:
    case 3:
      return ask(args, std::min(capacity, log_uniform(rng, bits)));
    default:
      return ask(args,
                 1 + static_cast<Word>(rng.below(std::uint64_t(std::min<Word>(capacity, 3)))));
  }
}
inline bool impossible(Arguments& args, std::size_t trial) {
  const std::array<Word, 6> costs{-1,         INT64_MIN,      args[0] + 1,
                                  word_limit, word_limit + 1, INT64_MAX};
  if (trial >= costs.size()) return false;
  ask(args, costs[trial] >= 0 && costs[trial] <= args[0] ? args[0] + 1 : costs[trial]);
  return true;
}
inline Wide most(const Arguments& args, Word us) {
  return args[0] + static_cast<Wide>(us) * args[1] / args[2];
}

}  // namespace token_bucket

inline std::span<const Generator> generators() {
  static constexpr std::array<Generator, 1> table{{
      {StateKind::token_bucket, token_bucket::any, token_bucket::frozen, token_bucket::slow,
       token_bucket::ask, token_bucket::draw, token_bucket::impossible, token_bucket::most},
  }};
  return table;
}

inline const Generator* find_generator(StateKind kind) {
  for (const Generator& generator : generators()) {
    if (generator.kind == kind) return &generator;
  }
  return nullptr;
}

}  // namespace sluice::testing::detail
