#include "sluice/sim/delay.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "sim/bad_argument.hpp"
#include "sim/fixed_point.hpp"
#include "sim/quantiles.hpp"

namespace sluice::sim {
namespace {

using fixed::Wide;

// A sum of twelve draws from 0 to 65535: its middle, and how far above it the 99 % quantile lies
// (2.302228 of the 6 that are the farthest possible).
constexpr std::int64_t bell_middle = std::int64_t{6} * 65'535;
constexpr std::int64_t bell_p99 = 150'879;

void require_range(const char* what, Span span, Word least) {
  if (span.count() >= least && span <= Delay::longest) return;
  refuse(what, us(least) + " to 30 days", us(span.count()));
}

template <class Table>
std::shared_ptr<const Table> shared(Table table) {
  return std::make_shared<const Table>(std::move(table));
}

/// The index of the part of [0, 2^64) that a draw lies in, given the ends of the parts; the last
/// one ends at 2^64 - 1, which belongs to it.
std::size_t part_of(const std::vector<std::uint64_t>& ends, std::uint64_t draw) noexcept {
  return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end() - 1, draw) -
                                  ends.begin());
}

/// Lines of quantiles, one for each part of [0, 2^64); none of the parts is empty.
struct Lines {
  struct Line {
    Word from;
    std::uint64_t rise;
  };
  std::vector<std::uint64_t> ends;
  std::vector<Line> lines;

  [[nodiscard]] std::uint64_t begin_of(std::size_t i) const noexcept {
    return i == 0 ? 0 : ends[i - 1];
  }

  /// The low bits of the draw round the delay.
  [[nodiscard]] Word at(std::uint64_t draw) const noexcept {
    const std::size_t i = part_of(ends, draw);
    const std::uint64_t width = ends[i] - begin_of(i);
    const std::uint64_t rest = std::min(draw - begin_of(i), width - 1);
    const int shift = std::countl_zero(width);
    const std::uint64_t fraction = (rest << shift) / ((width << shift) >> 32);  // Q32
    const std::uint64_t risen =  // in units of 2^-12 us
        fixed::scaled(lines[i].rise, std::min(fraction, fixed::one_q32), 20);
    return lines[i].from + static_cast<Word>((risen + (draw & 0xfff)) >> 12);
  }

  /// In nanoseconds.
  [[nodiscard]] Word mean() const noexcept {
    Wide sum = 0;  // twice the integral
    for (std::size_t i = 0; i < ends.size(); ++i) {
      sum += Wide{ends[i] - begin_of(i)} *
             (2 * static_cast<std::uint64_t>(lines[i].from) + lines[i].rise);
    }
    return static_cast<Word>(((sum >> 10) * 1'000 + (Wide{1} << 54)) >> 55);
  }
};

struct Parts {
  std::vector<std::uint64_t> ends;
  std::vector<Delay> delays;
};

/// The probabilities of the sums of a `bell`, in units of 2^-62: of twelve draws from 0 to 1023, to
/// save time.
std::vector<std::uint64_t> make_bell() {
  constexpr std::size_t draws = 12;
  constexpr std::size_t values = 1'024;
  std::vector<std::uint64_t> sums(draws * (values - 1) + 1);
  sums[0] = std::uint64_t{1} << 62;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    const std::vector<std::uint64_t> before = sums;
    std::uint64_t window = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      window += before[i];
      if (i >= values) window -= before[i - values];
      sums[i] = window / values;
    }
  }
  return sums;
}

/// True for this share of the draws, in units of 2^-64.
bool hits(std::uint64_t share, Rng& rng) { return rng.next() < share; }

std::string position(std::size_t i) { return " " + std::to_string(i + 1); }

void require_count(const char* what, std::size_t count, std::size_t least, std::size_t most) {
  if (count >= least && count <= most) return;
  refuse(what, std::to_string(least) + " to " + std::to_string(most), std::to_string(count));
}

void refuse_state(const char* what, const Delay& delay) {
  if (!delay.has_state()) return;
  throw std::invalid_argument(std::string(what) +
                              " cannot be one of phases() or runs(), whose states would be lost");
}

}  // namespace

/// Of index 0: fast, of 1: slow.
struct Delay::States {
  std::array<Delay, 2> delays;
  bool by_call;
  std::array<std::uint64_t, 2> last;    // mean times in us; mean runs in Q32
  std::uint64_t slow_share;             // of the draws, in units of 2^-64
  std::array<std::uint64_t, 2> change;  // of a run: the probability after a draw, the same
};

Delay Delay::with_states(States states) {
  for (const Delay& delay : states.delays) refuse_state("the delay of a state", delay);
  const Wide sum = Wide{states.last[0]} + states.last[1];
  states.slow_share = static_cast<std::uint64_t>((Wide{states.last[1]} << 64) / sum);
  const Word low = std::min(states.delays[0].min(), states.delays[1].min()).count();
  const Word high = std::max(states.delays[0].max(), states.delays[1].max()).count();
  return {Kind::states, low, high, shared(std::move(states))};
}

const Delay::States& Delay::states() const noexcept {
  return *static_cast<const States*>(table_.get());
}

Delay Delay::phases(const Delay& fast, Span fast_for, const Delay& slow, Span slow_for) {
  constexpr Word millisecond = 1'000;
  require_range("the mean time of the fast delay", fast_for, millisecond);
  require_range("the mean time of the slow delay", slow_for, millisecond);
  return with_states(
      {{fast, slow},
       false,
       {static_cast<std::uint64_t>(fast_for.count()), static_cast<std::uint64_t>(slow_for.count())},
       0,
       {0, 0}});
}

Delay Delay::runs(const Delay& fast, double fast_calls, const Delay& slow, double slow_calls) {
  require_within("the mean run of the fast delay", fast_calls, 1, 1 << 20);
  require_within("the mean run of the slow delay", slow_calls, 1, 1 << 20);
  States states{
      {fast, slow}, true, {fixed::to_q32(fast_calls), fixed::to_q32(slow_calls)}, 0, {0, 0}};
  for (std::size_t i = 0; i < 2; ++i) {
    const Wide change = (Wide{1} << 96) / states.last[i];  // at most 1, which is rounded down
    states.change[i] = change >> 64 != 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(change);
  }
  return with_states(states);
}

const Delay& DelayProcess::delay_in_state(Time now) {
  const Delay::States& s = delay_.states();
  // Beyond so many of the shorter means, a state depends on an earlier one by less than 2^-92.
  const Span forgets{static_cast<Word>(std::min(s.last[0], s.last[1])) * 64};
  const bool is_new = !has_begun_ || (!s.by_call && now - until_ > forgets);
  if (is_new) {
    has_begun_ = true;
    is_slow_ = hits(s.slow_share, states_);
    if (!s.by_call) begin_phase(now);
  }
  while (!s.by_call && until_ <= now) {
    is_slow_ = !is_slow_;
    begin_phase(until_);
  }
  const Delay& delay = s.delays[is_slow_ ? 1 : 0];
  if (s.by_call && hits(s.change[is_slow_ ? 1 : 0], states_)) is_slow_ = !is_slow_;
  return delay;
}

void DelayProcess::begin_phase(Time at) {
  const std::uint64_t mean = delay_.states().last[is_slow_ ? 1 : 0];
  const std::uint64_t draw = fixed::exponential_q32(states_.next());
  until_ = at + std::max(Span{static_cast<Word>(fixed::scaled(mean, draw, 32))}, Span{1});
}

Delay Delay::constant(Span span) {
  require_range("a delay", span, 0);
  return {Kind::constant, span.count(), span.count()};
}

Delay Delay::uniform(Span low, Span high) {
  require_range("the lowest delay", low, 0);
  require_range("the highest delay", high, low.count());
  return {Kind::uniform, low.count(), high.count()};
}

Delay Delay::exponential(Span mean) {
  require_range("the mean delay", mean, 1);
  return {Kind::exponential, mean.count(), 0};
}

Delay Delay::log_normal(Span p50, Span p99) {
  require_range("p50", p50, 1);
  require_range("p99", p99, p50.count());
  if (p99.count() > 64 * p50.count()) {
    refuse("p99", "at most 64 * p50 = " + us(64 * p50.count()), us(p99.count()));
  }
  const std::uint64_t ratio = fixed::log2_quick(static_cast<std::uint64_t>(p99.count())) -
                              fixed::log2_quick(static_cast<std::uint64_t>(p50.count()));
  return {Kind::log_normal, p50.count(), static_cast<Word>(ratio)};
}

Delay Delay::normal(Span mean, Span sd) {
  require_range("the mean of a normal delay", mean, 0);
  require_range("its standard deviation", sd, 0);
  const auto table = shared(normal_quantiles(mean.count(), sd.count()));
  return {Kind::quantiles, table->min(), table->max(), table};
}

Delay Delay::gamma(Span mean, double shape) {
  require_range("the mean of a gamma delay", mean, 1);
  require_within("its shape", shape, 0.05, 1'000);
  const auto table = shared(gamma_quantiles(mean.count(), fixed::to_q32(shape)));
  return {Kind::quantiles, table->min(), table->max(), table};
}

Delay Delay::pareto(Span min, double alpha, Span most) {
  require_range("the least Pareto delay", min, 1);
  require_range("its bound", most, min.count() + 1);
  require_within("its alpha", alpha, 0.1, 100);
  const auto table = shared(pareto_quantiles(min.count(), fixed::to_q32(alpha), most.count()));
  return {Kind::quantiles, table->min(), table->max(), table};
}

Delay Delay::weibull(Span scale, double shape) {
  require_range("the scale of a Weibull delay", scale, 1);
  require_within("its shape", shape, 0.1, 100);
  const auto table = shared(weibull_quantiles(scale.count(), fixed::to_q32(shape)));
  return {Kind::quantiles, table->min(), table->max(), table};
}

Delay Delay::empirical(const std::vector<Point>& points) {
  require_count("the number of points", points.size(), 2, 65'536);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& before = points[i == 0 ? 0 : i - 1];
    require_within(("the share of point" + position(i)).c_str(), points[i].share, before.share, 1);
    require_range(("the delay of point" + position(i)).c_str(), points[i].delay,
                  before.delay.count());
  }
  require_range("the delay of point 1", points.front().delay, 0);
  require_within("the share of the first point", points.front().share, 0, 0);
  require_within("the share of the last point", points.back().share, 1, 1);
  Lines lines;
  std::uint64_t end = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const std::uint64_t share = fixed::to_q32(points[i].share);
    const std::uint64_t next = share == fixed::one_q32 ? ~std::uint64_t{0} : share << 32;
    if (next == end) continue;
    end = next;
    const Word from = points[i - 1].delay.count();
    lines.ends.push_back(end);
    lines.lines.push_back({from, static_cast<std::uint64_t>(points[i].delay.count() - from)});
  }
  const Word low = lines.lines.front().from;
  const Word high = lines.lines.back().from + static_cast<Word>(lines.lines.back().rise);
  return {Kind::empirical, low, high, shared(std::move(lines))};
}

Delay Delay::mixture(const std::vector<Part>& parts) {
  require_count("the number of parts", parts.size(), 1, 4'096);
  Wide total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_within(("the weight of part" + position(i)).c_str(), parts[i].weight, 0, 1 << 20);
    total += fixed::to_q32(parts[i].weight);
    refuse_state(("part" + position(i) + " of a mixture").c_str(), parts[i].delay);
  }
  if (total == 0) refuse("the sum of the weights", "positive", "0");
  Parts table;
  Wide sum = 0;
  Word low = std::numeric_limits<Word>::max();
  Word high = 0;
  for (const Part& part : parts) {
    const std::uint64_t weight = fixed::to_q32(part.weight);
    if (weight == 0) continue;
    sum += weight;
    table.ends.push_back(static_cast<std::uint64_t>(((sum << 62) / total) << 2));
    table.delays.push_back(part.delay);
    low = std::min(low, part.delay.min().count());
    high = std::max(high, part.delay.max().count());
  }
  table.ends.back() = ~std::uint64_t{0};
  return {Kind::mixture, low, high, shared(std::move(table))};
}

/// a * 2^(b * bell / bell_p99).
Word Delay::stretched(std::int64_t bell) const noexcept {
  const std::int64_t exponent = b_ * bell / bell_p99;  // Q32, of either sign
  const std::int64_t whole = exponent >> 32;
  const std::uint64_t power =
      fixed::interpolated(fixed::exp2_table, static_cast<std::uint64_t>(exponent) & 0xffffffff);
  const Wide product = Wide{static_cast<std::uint64_t>(a_)} * power;
  return static_cast<Word>(product >> (32 - whole));
}

Span Delay::sample(Rng& rng) const {
  switch (kind_) {
    case Kind::constant:
      break;
    case Kind::uniform:
      return Span{a_ + static_cast<Word>(rng.below(static_cast<std::uint64_t>(b_ - a_) + 1))};
    case Kind::exponential:
      return Span{static_cast<Word>(
          fixed::scaled(static_cast<std::uint64_t>(a_), fixed::exponential_q32(rng.next()), 32))};
    case Kind::log_normal: {
      std::int64_t bell = -bell_middle;
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t draw = rng.next();
        for (int shift = 0; shift < 64; shift += 16) {
          bell += static_cast<std::int64_t>(draw >> shift & 0xffff);
        }
      }
      return Span{stretched(bell)};
    }
    case Kind::quantiles:
      return Span{static_cast<const QuantileTable*>(table_.get())->at(rng.next())};
    case Kind::empirical:
      return Span{static_cast<const Lines*>(table_.get())->at(rng.next())};
    case Kind::mixture: {
      const Parts& parts = *static_cast<const Parts*>(table_.get());
      return parts.delays[part_of(parts.ends, rng.next())].sample(rng);
    }
    case Kind::states:
      return states().delays[hits(states().slow_share, rng) ? 1 : 0].sample(rng);
  }
  return Span{a_};
}

Span Delay::min() const noexcept {
  if (kind_ == Kind::exponential) return Span{0};
  return Span{kind_ == Kind::log_normal ? stretched(-bell_middle) : a_};
}

Span Delay::max() const noexcept {
  if (kind_ == Kind::exponential) {
    const std::uint64_t most = fixed::scaled(std::uint64_t{64} << 32, fixed::ln2_q32, 32);
    return Span{static_cast<Word>(fixed::scaled(static_cast<std::uint64_t>(a_), most, 32))};
  }
  return Span{kind_ == Kind::log_normal ? stretched(bell_middle) : b_};
}

std::chrono::nanoseconds Delay::mean() const {
  using std::chrono::nanoseconds;
  switch (kind_) {
    case Kind::constant:
    case Kind::uniform:
      break;
    case Kind::exponential: {
      // 1 / (exp(1 / m) - 1) = m - 1/2 + 1 / (12 m) - 1 / (720 m^3) + ..., in picoseconds.
      const Word m = a_;
      const Word small = m <= 8 ? 1'389 / (m * m * m) - 33 / (m * m * m * m * m) : 0;
      return nanoseconds{(m * 1'000'000 - 500'000 + 83'333 / m - small + 500) / 1'000};
    }
    case Kind::log_normal:
      return nanoseconds{mean_of_log_normal()};
    case Kind::quantiles:
      return nanoseconds{static_cast<const QuantileTable*>(table_.get())->mean()};
    case Kind::empirical:
      return nanoseconds{static_cast<const Lines*>(table_.get())->mean()};
    case Kind::mixture: {
      const Parts& parts = *static_cast<const Parts*>(table_.get());
      Wide sum = 0;
      std::uint64_t begin = 0;
      for (std::size_t i = 0; i < parts.ends.size(); ++i) {
        sum += Wide{parts.ends[i] - begin} *
               static_cast<std::uint64_t>(parts.delays[i].mean().count());
        begin = parts.ends[i];
      }
      return nanoseconds{static_cast<Word>((sum + (Wide{1} << 63)) >> 64)};
    }
    case Kind::states: {
      const States& s = states();
      const auto mean_of = [&s](std::size_t i) {
        return Wide(s.delays[i].mean().count()) * s.last[i];
      };
      const Wide sum = Wide{s.last[0]} + s.last[1];
      return nanoseconds{static_cast<Word>((mean_of(0) + mean_of(1) + sum / 2) / sum)};
    }
  }
  return nanoseconds{(a_ + b_) * 500};
}

/// In nanoseconds. The bell in steps of 64, each at its middle.
Word Delay::mean_of_log_normal() const {
  static const std::vector<std::uint64_t> bell = make_bell();
  Wide sum = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < bell.size(); ++i) {
    const std::int64_t middle = static_cast<std::int64_t>(i) * 64 + 12 * 63 / 2 - bell_middle;
    sum += Wide{bell[i]} * static_cast<std::uint64_t>(stretched(middle));
    total += bell[i];
  }
  return static_cast<Word>((sum * 1'000 + total / 2) / total);
}

}  // namespace sluice::sim
