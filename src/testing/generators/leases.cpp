// Random requests for leases: few ids, so that they repeat. Rows are compared by their ids, because
// a copy of a kernel has its own rows. Threading: pure functions.
#include <algorithm>
#include <array>

#include "sluice/rules/leases.hpp"
#include "src/testing/generators.hpp"

namespace sluice::testing::detail::leases {
namespace {

using Rule = LeasesRule;

/// A configuration's arguments are those of acquire: limit, weight, ttl, tier.
Configuration any(Rng& rng) {
  Configuration config;
  config.args = {rng.below(4) == 0 ? log_uniform(rng, 52) : uniform(rng, 1, 6), 1,
                 std::clamp(log_uniform(rng, 40), Rule::min_ttl, Rule::max_ttl),
                 uniform(rng, 0, Rule::max_tier)};
  if (rng.below(16) == 0) config.args[0] = word_limit;
  if (rng.below(16) == 0) config.args[2] = rng.below(2) == 0 ? Rule::min_ttl : Rule::max_ttl;
  return config;
}

Word draw_weight(Rng& rng, Word limit) {
  if (rng.below(8) == 0) return limit;
  if (rng.below(4) == 0) return uniform(rng, 1, limit);
  return uniform(rng, 1, std::min<Word>(limit, 2));
}
Word draw_ttl(Rng& rng, Word ttl) {
  if (rng.below(4) != 0) return ttl;
  return std::clamp(uniform(rng, ttl / 4, 2 * ttl), Rule::min_ttl, Rule::max_ttl);
}
Word draw_slot(Rng& rng) { return rng.below(3) == 0 ? 0 : uniform(rng, 1, 6); }
void draw_id(Rng& rng, Word* id) {
  const bool large = rng.below(16) == 0;
  id[0] = large ? word_limit - 1 : uniform(rng, 0, 7);
  id[1] = large ? word_limit - 1 : uniform(rng, 0, 7) / 7;
  id[2] = large ? (Word{1} << 24) - 1 : uniform(rng, 0, 7) / 7;
}

void draw(Rng& rng, const Operation& row, Arguments& args) {
  const Word limit = args[0];
  const Word ttl = draw_ttl(rng, args[2]);
  const Word tier = args[3];
  args = {limit};
  if (row.id == leases_acquire.id) {
    args = {limit, draw_weight(rng, limit), ttl, tier, uniform(rng, 0, 1)};
    draw_id(rng, &args[5]);
  } else if (row.id == leases_release.id) {
    args[1] = draw_slot(rng);
    draw_id(rng, &args[2]);
  } else if (row.id == leases_renew.id) {
    args[1] = ttl;
    args[2] = draw_slot(rng);
    draw_id(rng, &args[3]);
  } else if (row.id == leases_block.id) {
    args[0] = std::min(limit, Rule::block_weight);
    const std::array<Word, 5> spans{0, 1, ttl, log_uniform(rng, 44), Rule::max_block};
    args[1] = std::min(Rule::max_block, spans[rng.below(spans.size())]);
  } else if (row.id == leases_peek.id) {
    args[1] = draw_weight(rng, limit);
    args[2] = tier;
  }
}

/// An index of an argument, and an invalid value.
struct Fault {
  std::size_t index;
  Word value;
};

bool impossible(const Operation& row, Arguments& args, std::size_t trial) {
  const Word limit = args[0];
  const auto spoil = [&](auto&& faults, const Arguments& sound) {
    if (trial >= faults.size()) return false;
    args = sound;
    args[faults[trial].index] = faults[trial].value;
    return true;
  };
  constexpr Word low_24 = Word{1} << 24;
  if (row.id == leases_acquire.id) {
    const std::array<Fault, 20> faults{{{1, 0},
                                        {1, limit + 1},
                                        {2, Rule::min_ttl - 1},
                                        {2, Rule::max_ttl + 1},
                                        {3, Rule::max_tier + 1},
                                        {5, word_limit},
                                        {7, low_24},
                                        {4, 2},
                                        {0, 0},
                                        {1, -1},
                                        {1, INT64_MAX},
                                        {1, INT64_MIN},
                                        {0, -1},
                                        {0, word_limit + 1},
                                        {2, 0},
                                        {2, INT64_MAX},
                                        {3, -1},
                                        {4, -1},
                                        {6, -1},
                                        {5, INT64_MIN}}};
    return spoil(faults, {limit, 1, Rule::min_ttl, 0, 1, 1, 1, 1});
  }
  if (row.id == leases_release.id) {
    const std::array<Fault, 7> faults{{{0, 0},
                                       {0, word_limit + 1},
                                       {1, -1},
                                       {1, Rule::max_holders + 1},
                                       {2, word_limit},
                                       {3, -1},
                                       {4, low_24}}};
    return spoil(faults, {limit, 1, 1, 1, 1});
  }
  if (row.id == leases_renew.id) {
    const std::array<Fault, 8> faults{{{0, -1},
                                       {1, Rule::min_ttl - 1},
                                       {1, Rule::max_ttl + 1},
                                       {2, -1},
                                       {2, Rule::max_holders + 1},
                                       {3, -1},
                                       {4, word_limit},
                                       {5, low_24}}};
    return spoil(faults, {limit, Rule::min_ttl, 1, 1, 1, 1});
  }
  if (row.id == leases_block.id) {
    const std::array<Fault, 5> faults{
        {{0, 0}, {0, Rule::block_weight + 1}, {1, -1}, {1, Rule::max_block + 1}, {1, INT64_MAX}}};
    return spoil(faults, {limit, 1});
  }
  if (row.id == leases_peek.id) {
    const std::array<Fault, 6> faults{
        {{0, 0}, {1, 0}, {1, -1}, {1, limit + 1}, {2, -1}, {2, Rule::max_tier + 1}}};
    return spoil(faults, {limit, 1, 0});
  }
  const std::array<Fault, 3> faults{{{0, 0}, {0, -1}, {0, word_limit + 1}}};
  return spoil(faults, {limit});
}

}  // namespace

constinit const Generator generator{StateKind::leases, any, draw, impossible, nullptr};

}  // namespace sluice::testing::detail::leases
