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

/// Of the three words of an id, from this index on.
void add_id(std::vector<Bound>& all, std::size_t first) {
  all.push_back({first, 0, word_limit - 1});
  all.push_back({first + 1, 0, word_limit - 1});
  all.push_back({first + 2, 0, (Word{1} << 24) - 1});
}

std::vector<Bound> bounds(const Operation& row, const Arguments& call) {
  if (row.id == leases_block.id) return {{0, 1, Rule::block_weight}, {1, 0, Rule::max_block}};
  if (row.id == leases_acquire.id || row.id == leases_peek.id) {
    const Word limit = call[0];
    const Word weight = call[1];
    const bool is_least = weight == 1;
    std::vector<Bound> all{
        {0, weight, word_limit, is_least ? Errc::invalid_argument : Errc::cost_exceeds_capacity},
        {1, 1, limit, Errc::invalid_cost, Errc::cost_exceeds_capacity},
        {row.id == leases_acquire.id ? 3u : 2u, 0, Rule::max_tier}};
    if (row.id == leases_peek.id) return all;
    all.push_back({2, Rule::min_ttl, Rule::max_ttl});
    all.push_back({4, 0, 1});
    add_id(all, 5);
    return all;
  }
  std::vector<Bound> all{{0, 1, word_limit}};
  if (row.id == leases_release.id) {
    all.push_back({1, 0, Rule::max_holders});
    add_id(all, 2);
  } else if (row.id == leases_renew.id) {
    all.push_back({1, Rule::min_ttl, Rule::max_ttl});
    all.push_back({2, 0, Rule::max_holders});
    add_id(all, 3);
  }
  return all;
}

}  // namespace

constinit const Generator generator{StateKind::leases, any, draw, bounds, nullptr};

}  // namespace sluice::testing::detail::leases
