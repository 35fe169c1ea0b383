#include "sluice/sim/choice.hpp"

#include <bit>
#include <string>

#include "sim/bad_argument.hpp"
#include "sim/fixed_point.hpp"

namespace sluice::sim {
namespace {

using fixed::Wide;

constexpr std::uint64_t all = ~std::uint64_t{0};

void require_size(std::size_t n) {
  if (n >= 1 && n <= Choice::largest) return;
  refuse("the number of choices", "1 to " + std::to_string(Choice::largest), std::to_string(n));
}

}  // namespace

/// Columns of equal width, each divided between its own index, below, and another one, above.
struct Choice::Table {
  struct Column {
    std::uint64_t own;  // in units of 2^-64 of the column
    std::uint32_t other;
  };
  std::vector<Column> columns;
  std::vector<std::uint64_t> weights;
  std::uint64_t total;
};

Choice Choice::uniform(std::size_t n) {
  require_size(n);
  return {Kind::uniform, n, 0};
}

Choice Choice::zipf(std::size_t n, double exponent) {
  require_size(n);
  require_within("the exponent of Zipf's law", exponent, 0, 20);
  const std::uint64_t power = fixed::to_q32(exponent);
  std::vector<std::uint64_t> weights(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t octaves = fixed::scaled(fixed::log2_exact(i + 1), power, 32);
    weights[i] = fixed::times_exp2(1, -static_cast<std::int64_t>(octaves), 62, all);
  }
  return of_weights(std::move(weights));
}

Choice Choice::hot(std::size_t n, double share) {
  require_size(n);
  require_within("the share of the hot choice", share, 0, 1);
  const std::uint64_t part = fixed::to_q32(share);
  return {Kind::hot, n, n == 1 || part == fixed::one_q32 ? all : part << 32};
}

Choice Choice::weights(const std::vector<double>& weights) {
  require_size(weights.size());
  std::vector<std::uint64_t> whole(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    require_within(("weight " + std::to_string(i)).c_str(), weights[i], 0, 1 << 20);
    whole[i] = fixed::to_q32(weights[i]);
  }
  return of_weights(std::move(whole));
}

Choice Choice::of_weights(std::vector<std::uint64_t> weights) {
  const std::size_t n = weights.size();
  Wide sum = 0;
  for (const std::uint64_t weight : weights) sum += weight;
  if (sum == 0) refuse("the sum of the weights", "positive", "0");
  // At most 2^63 in total, so that the products below fit.
  const auto excess = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(sum >> 63)));
  auto table = std::make_shared<Table>();
  table->total = 0;
  for (std::uint64_t& weight : weights) table->total += weight >>= excess;

  // What each choice needs of the columns; a column holds `total`.
  const std::uint64_t total = table->total;
  std::vector<Wide> needs(n);
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::size_t i = 0; i < n; ++i) {
    needs[i] = Wide{weights[i]} * n;
    (needs[i] < total ? small : large).push_back(static_cast<std::uint32_t>(i));
  }
  table->columns.resize(n);
  while (!small.empty() && !large.empty()) {
    const std::uint32_t low = small.back();
    const std::uint32_t high = large.back();
    small.pop_back();
    table->columns[low] = {static_cast<std::uint64_t>((needs[low] << 64) / total), high};
    needs[high] -= total - needs[low];
    if (needs[high] >= total) continue;
    large.pop_back();
    small.push_back(high);
  }
  for (const std::uint32_t i : large) table->columns[i] = {all, i};
  table->weights = std::move(weights);
  Choice choice(Kind::table, n, 0);
  choice.table_ = std::move(table);
  return choice;
}

std::size_t Choice::draw(Rng& rng) const {
  switch (kind_) {
    case Kind::uniform:
      break;
    case Kind::hot:
      if (hot_share_ == all || rng.next() < hot_share_) return 0;
      return 1 + static_cast<std::size_t>(rng.below(size_ - 1));
    case Kind::table: {
      const Wide place = Wide{rng.next()} * size_;
      const auto i = static_cast<std::size_t>(place >> 64);
      const Table::Column& column = table_->columns[i];
      return static_cast<std::uint64_t>(place) < column.own ? i : column.other;
    }
  }
  return static_cast<std::size_t>(rng.below(size_));
}

double Choice::share(std::size_t i) const noexcept {
  switch (kind_) {
    case Kind::uniform:
      break;
    case Kind::hot: {
      if (hot_share_ == all) return i == 0 ? 1 : 0;
      const double first = static_cast<double>(hot_share_) / 18446744073709551616.0;
      return i == 0 ? first : (1 - first) / static_cast<double>(size_ - 1);
    }
    case Kind::table:
      return static_cast<double>(table_->weights[i]) / static_cast<double>(table_->total);
  }
  return 1 / static_cast<double>(size_);
}

}  // namespace sluice::sim
