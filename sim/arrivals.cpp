#include "sluice/sim/arrivals.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/arrivals_model.hpp"
#include "sim/bad_argument.hpp"

namespace sluice::sim {
namespace {

using fixed::SignedWide;
using fixed::Wide;

constexpr Word year = Word{365} * 86'400 * 1'000'000;
constexpr Word second = 1'000'000;
constexpr std::uint64_t most_per_us = 100;

void require_span(const char* what, Span span, Word least) {
  if (span.count() >= least && span.count() <= year) return;
  refuse(what, us(least) + " to 365 days", us(span.count()));
}

/// Calls per microsecond.
Quotient quotient_of(const Rate& rate) {
  require_span("the time of a rate", rate.per, 1);
  const Word most = rate.per.count() * static_cast<Word>(most_per_us);
  if (rate.events < 0 || rate.events > most) {
    refuse("a rate", "0 to 10^8 calls a second",
           std::to_string(rate.events) + " in " + us(rate.per.count()));
  }
  return Quotient::of(static_cast<Wide>(rate.events), static_cast<Wide>(rate.per.count()));
}

Quotient times(Quotient a, Wide num, Wide den) { return Quotient::of(a.num * num, a.den * den); }

Quotient checked_rate(Quotient rate) {
  if (rate.num <= most_per_us * Wide{rate.den}) return rate;
  refuse("a scaled rate", "at most 10^8 calls a second", text_of(rate.value() * second));
}

/// sin(x) for 0 <= x <= pi / 2, in Q60.
std::int64_t sine_q60(std::int64_t x) noexcept {
  SignedWide sum = x;
  SignedWide term = x;
  for (int k = 2; k <= 22; k += 2) {
    term = -(term * x >> 60) * x / (k * (k + 1)) >> 60;
    sum += term;
  }
  return static_cast<std::int64_t>(sum);
}

constexpr std::size_t diurnal_steps = 288;

/// The averages of sin over the 288ths of a turn, in Q32: sin at the middle times sin(h) / h, where
/// h is half a step.
std::array<std::int64_t, diurnal_steps> sine_steps() noexcept {
  constexpr std::int64_t pi = 3'622'009'729'038'561'421;  // Q60
  constexpr std::int64_t half = pi / diurnal_steps;
  const SignedWide average = (SignedWide{sine_q60(half)} << 60) / half;
  constexpr std::size_t quarter = diurnal_steps / 4;
  std::array<std::int64_t, diurnal_steps> steps{};
  for (std::size_t i = 0; i < quarter; ++i) {
    const auto middle = static_cast<std::int64_t>(2 * i + 1) * half;
    const auto value = static_cast<std::int64_t>(average * sine_q60(middle) >> 88);
    steps[i] = steps[2 * quarter - 1 - i] = value;
    steps[2 * quarter + i] = steps[4 * quarter - 1 - i] = -value;
  }
  return steps;
}

}  // namespace

Quotient Quotient::of(Wide num, Wide den) noexcept {
  Wide a = num;
  Wide b = den;
  while (b != 0) a = std::exchange(b, a % b);
  if (a != 0) {
    num /= a;
    den /= a;
  }
  while (num >> 63 != 0 || den >> 63 != 0) {
    num >>= 1;
    den >>= 1;
  }
  return {static_cast<std::uint64_t>(num),
          std::max(static_cast<std::uint64_t>(den), std::uint64_t{1})};
}

Arrivals::Model::Piece::Piece(Quotient calls_per_us, Word us)
    : rate(calls_per_us),
      length(us),
      calls_q72(rate.num >> 56 == 0 ? (Wide{rate.num} << 72) / rate.den
                                    : ((Wide{rate.num} << 64) / rate.den) << 8),
      gap_q32(rate.num == 0 ? 0 : std::min((Wide{rate.den} << 32) / rate.num, Wide{1} << 85)) {}

Arrivals::Model::Model(std::vector<Piece> all) : kind(Kind::poisson), pieces(std::move(all)) {
  if (pieces.back().length == 0) return;
  for (const Piece& piece : pieces) {
    period += piece.length;
    const Wide calls = piece.calls_q72 * static_cast<std::uint64_t>(piece.length);
    period_calls_q72 = std::min(period_calls_q72 + calls, Wide{1} << 126);
  }
}

Arrivals Arrivals::constant(Rate rate) {
  auto model = std::make_shared<Model>(Model::Kind::constant);
  model->rate = quotient_of(rate);
  return Arrivals(std::move(model));
}

Arrivals Arrivals::poisson(Rate rate) {
  return Arrivals(std::make_shared<Model>(std::vector{Model::Piece(quotient_of(rate), 0)}));
}

Arrivals Arrivals::pattern(const std::vector<Phase>& phases) {
  if (phases.empty() || phases.size() > 65'536) {
    refuse("the number of phases", "1 to 65536", std::to_string(phases.size()));
  }
  std::vector<Model::Piece> pieces;
  for (const Phase& phase : phases) {
    require_span("the length of a phase", phase.length, 1);
    pieces.emplace_back(quotient_of(phase.rate), phase.length.count());
  }
  return Arrivals(std::make_shared<Model>(std::move(pieces)));
}

Arrivals Arrivals::on_off(Rate busy, Rate calm, Span phase) {
  return pattern({{busy, phase}, {calm, phase}});
}

Arrivals Arrivals::mmpp(Phase busy, Phase calm, const SeededRng& draws) {
  constexpr Word millisecond = 1'000;
  require_span("the mean length of a busy phase", busy.length, millisecond);
  require_span("the mean length of a calm phase", calm.length, millisecond);
  auto model = std::make_shared<Model>(
      std::vector{Model::Piece(quotient_of(busy.rate), busy.length.count()),
                  Model::Piece(quotient_of(calm.rate), calm.length.count())});
  model->phases = draws;
  return Arrivals(std::move(model));
}

Arrivals Arrivals::diurnal(Rate mean, double swing, Span period) {
  const Quotient rate = quotient_of(mean);
  require_within("the swing of a diurnal rate", swing, 0, 1);
  require_span("its period", period, second);
  static const auto steps = sine_steps();
  const auto part = static_cast<std::int64_t>(fixed::to_q32(swing));
  std::vector<Model::Piece> pieces;
  Word begin = 0;
  for (std::size_t i = 0; i < diurnal_steps; ++i) {
    const Word end = static_cast<Word>(Wide(period.count()) * (i + 1) / diurnal_steps);
    const std::int64_t factor =
        std::int64_t{fixed::one_q32} + static_cast<std::int64_t>(SignedWide{part} * steps[i] >> 32);
    pieces.emplace_back(
        checked_rate(times(rate, Wide(std::max(factor, std::int64_t{0})), fixed::one_q32)),
        end - begin);
    begin = end;
  }
  return Arrivals(std::make_shared<Model>(std::move(pieces)));
}

Arrivals Arrivals::spike(Rate base, double factor, Span from, Span length) {
  const Quotient rate = quotient_of(base);
  require_within("the factor of a spike", factor, 0, 1e6);
  require_span("the start of a spike", from, 0);
  require_span("the length of a spike", length, 1);
  std::vector<Model::Piece> pieces;
  if (from.count() > 0) pieces.emplace_back(rate, from.count());
  pieces.emplace_back(checked_rate(times(rate, fixed::to_q32(factor), fixed::one_q32)),
                      length.count());
  pieces.emplace_back(rate, 0);
  return Arrivals(std::make_shared<Model>(std::move(pieces)));
}

Arrivals Arrivals::trace(std::vector<Span> offsets) {
  Span before{0};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Span offset = offsets[i];
    if (offset < before || offset.count() > word_limit) {
      const std::string call = "call " + std::to_string(i + 1) + " of a trace";
      if (offset.count() >= 0 && offset < before) {
        throw std::invalid_argument(call + " comes at " + us(offset.count()) + ", before call " +
                                    std::to_string(i) + " at " + us(before.count()));
      }
      refuse("the offset of " + call, "0 us to 2^52 us", us(offset.count()));
    }
    before = offset;
  }
  auto model = std::make_shared<Model>(Model::Kind::trace);
  model->offsets = std::make_shared<const std::vector<Span>>(std::move(offsets));
  return Arrivals(std::move(model));
}

Arrivals Arrivals::scaled(Word num, Word den) const {
  constexpr Word most = Word{1} << 32;
  if (num < 0 || num > most || den < 1 || den > most) {
    refuse("a factor", "0 to 2^32 divided by 1 to 2^32",
           std::to_string(num) + " / " + std::to_string(den));
  }
  const auto changed = [&](Quotient rate) {
    return checked_rate(times(rate, static_cast<Wide>(num), static_cast<Wide>(den)));
  };
  if (model_->kind == Model::Kind::poisson) {
    std::vector<Model::Piece> pieces;
    for (const Model::Piece& piece : model_->pieces) {
      pieces.emplace_back(changed(piece.rate), piece.length);
    }
    auto model = std::make_shared<Model>(std::move(pieces));
    model->phases = model_->phases;
    return Arrivals(std::move(model));
  }
  auto model = std::make_shared<Model>(*model_);
  model->rate = changed(model->rate);
  model->copies = times(model->copies, static_cast<Wide>(num), static_cast<Wide>(den));
  return Arrivals(std::move(model));
}

Arrivals Arrivals::part(std::uint32_t index, std::uint32_t of) const {
  constexpr std::uint32_t most = 1 << 20;
  if (of < 1 || of > most) refuse("a number of parts", "1 to 2^20", std::to_string(of));
  if (index >= of) {
    refuse("the index of a part", "0 to " + std::to_string(of - 1), std::to_string(index));
  }
  if (model_->kind == Model::Kind::poisson) return scaled(1, of);
  if (model_->stride > most)
    refuse("a part that is divided", "at most a 2^20th", std::to_string(model_->stride));
  auto model = std::make_shared<Model>(*model_);
  model->first += index * model->stride;
  model->stride *= of;
  return Arrivals(std::move(model));
}

namespace {

/// How many of the numbers first, first + stride... are below `end`.
std::uint64_t count_below(std::uint64_t end, std::uint64_t first, std::uint64_t stride) noexcept {
  return end <= first ? 0 : (end - first - 1) / stride + 1;
}

}  // namespace

double Arrivals::peak() const {
  double most = 0;
  for (const Model::Piece& piece : model_->pieces) most = std::max(most, piece.rate.value());
  if (model_->kind == Model::Kind::constant) {
    most = model_->rate.value() / static_cast<double>(model_->stride);
  }
  if (model_->kind != Model::Kind::trace) return most * second;
  const std::vector<Span>& offsets = *model_->offsets;
  std::uint64_t busiest = 0;
  std::uint64_t count = 0;
  Word last = -1;
  for (std::uint64_t i = model_->first; i < offsets.size(); i += model_->stride) {
    const Word now = offsets[i].count() / second;
    count = now == last ? count + 1 : 1;
    last = now;
    busiest = std::max(busiest, count);
  }
  return static_cast<double>(busiest) * model_->copies.value();
}

double Arrivals::mean_rate() const {
  const Model& m = *model_;
  if (m.kind == Model::Kind::constant) return peak();
  if (m.kind == Model::Kind::poisson && m.period == 0) return m.pieces.back().rate.value() * second;
  Word length = m.period;
  if (m.kind == Model::Kind::trace) {
    length = m.offsets->empty() ? 1 : std::max(m.offsets->back().count(), Word{1});
  }
  const Word end = m.kind == Model::Kind::trace ? length + 1 : length;  // includes the last call
  return expected(Span{end}) / static_cast<double>(length) * second;
}

double Arrivals::expected(Span length) const {
  const Model& m = *model_;
  if (length.count() <= 0) return 0;
  switch (m.kind) {
    case Model::Kind::constant: {
      // Call n, counted from 1, comes before `length` if n * den < length * num.
      const Wide end = (Wide(length.count()) * m.rate.num + m.rate.den - 1) / m.rate.den;
      const auto calls = static_cast<std::uint64_t>(end == 0 ? 0 : end - 1);
      return static_cast<double>(count_below(calls, m.first, m.stride));
    }
    case Model::Kind::trace: {
      const auto end = std::lower_bound(m.offsets->begin(), m.offsets->end(), length);
      const auto calls = static_cast<std::uint64_t>(end - m.offsets->begin());
      return static_cast<double>(count_below(calls, m.first, m.stride)) * m.copies.value();
    }
    case Model::Kind::poisson:
      break;
  }
  const auto within = [&m](Word rest) {  // of the first period
    double sum = 0;
    for (const Model::Piece& piece : m.pieces) {
      const Word part = piece.length == 0 ? rest : std::min(piece.length, rest);
      sum += piece.rate.value() * static_cast<double>(part);
      rest -= part;
    }
    return sum;
  };
  if (m.period == 0) return within(length.count());
  if (m.phases) {
    return within(m.period) / static_cast<double>(m.period) * static_cast<double>(length.count());
  }
  const Word periods = length.count() / m.period;
  return static_cast<double>(periods) * within(m.period) + within(length.count() % m.period);
}

std::size_t Arrivals::trace_size() const noexcept {
  return model_->offsets ? model_->offsets->size() : 0;
}

}  // namespace sluice::sim
