#include <algorithm>

#include "sim/arrivals_model.hpp"

namespace sluice::sim {

using fixed::Wide;

ArrivalProcess::ArrivalProcess(const Arrivals& arrivals, const SeededRng& rng, Span until)
    : arrivals_(arrivals),
      rng_(rng),
      phases_(arrivals.model_->phases.value_or(rng)),
      until_(std::min(until.count(), word_limit)),
      count_(arrivals.model_->first) {
  const Arrivals::Model& m = *arrivals_.model_;
  if (m.kind != Arrivals::Model::Kind::poisson) return;
  if (m.phases) {
    const auto busy = static_cast<std::uint64_t>(m.pieces.front().length);
    phase_ = phases_.below(static_cast<std::uint64_t>(m.period)) < busy ? 0 : 1;
  }
  begin_phase();
}

/// A phase of mmpp() is drawn when it begins; one that has begun earlier ends as if it began now.
void ArrivalProcess::begin_phase() {
  const Arrivals::Model& m = *arrivals_.model_;
  phase_length_ = m.pieces[phase_].length;
  if (!m.phases) return;
  const std::uint64_t draw = fixed::exponential_q32(phases_.next());
  phase_length_ = std::max(
      static_cast<Word>(fixed::scaled(static_cast<std::uint64_t>(phase_length_), draw, 32)),
      Word{1});
}

std::optional<Span> ArrivalProcess::next() {
  switch (arrivals_.model_->kind) {
    case Arrivals::Model::Kind::constant:
      return next_of_constant();
    case Arrivals::Model::Kind::trace:
      return next_of_trace();
    case Arrivals::Model::Kind::poisson:
      break;
  }
  return next_of_rate();
}

std::optional<Span> ArrivalProcess::next_of_constant() {
  const Arrivals::Model& m = *arrivals_.model_;
  if (m.rate.num == 0) return std::nullopt;
  const Wide at = Wide{count_ + 1} * m.rate.den / m.rate.num;
  if (at > Wide(until_)) return std::nullopt;
  count_ += m.stride;
  return Span{static_cast<Word>(at)};
}

std::optional<Span> ArrivalProcess::next_of_trace() {
  const Arrivals::Model& m = *arrivals_.model_;
  if (m.copies.num == 0) return std::nullopt;
  const std::uint64_t remainder = m.copies.num % m.copies.den;
  while (repeats_ == 0) {
    if (count_ >= m.offsets->size() || (*m.offsets)[count_].count() > until_) return std::nullopt;
    position_ = static_cast<std::size_t>(count_);
    count_ += m.stride;
    repeats_ = m.copies.num / m.copies.den;
    if (remainder != 0 && rng_.below(m.copies.den) < remainder) ++repeats_;
  }
  --repeats_;
  return (*m.offsets)[position_];
}

// The integral of the rate in units of 2^-72 calls: rare calls in short phases need the digits.

namespace {

/// How long a piece takes for so many calls, in units of 2^-32 us.
Wide way_of(Wide calls, const Wide& rate, const Wide& gap) noexcept {
  if (calls >> 60 != 0) return (calls >> 40) * gap >> 32;
  return (calls << 32) / rate;
}

/// Passes the whole periods in which the rate adds up to less than `calls`. False: that is beyond
/// the end of time.
bool skip_periods(Word period, const Wide& period_calls, Word& start, Wide& calls) noexcept {
  if (period_calls == 0) return false;
  const Wide periods = calls / period_calls;
  if (periods > Wide((word_limit - start) / period)) return false;
  start += static_cast<Word>(periods) * period;
  calls -= periods * period_calls;
  return true;
}

}  // namespace

/// Moves on until the integral of the rate has grown by an exponential draw.
std::optional<Span> ArrivalProcess::next_of_rate() {
  const Arrivals::Model& m = *arrivals_.model_;
  Wide calls = Wide{fixed::exponential_q32(rng_.next())} << 40;
  for (;;) {
    const Arrivals::Model::Piece& piece = m.pieces[phase_];
    const Wide from = Wide{into_} << 32 | rest_;
    const Wide end = Wide(phase_length_) << 32;
    if (piece.calls_q72 != 0) {
      const Wide to = from + way_of(calls, piece.calls_q72, piece.gap_q32);
      if (end == 0 || to < end) {
        if ((to >> 32) + Wide(phase_start_) > Wide(until_)) return std::nullopt;
        into_ = static_cast<std::uint64_t>(to >> 32);
        rest_ = static_cast<std::uint32_t>(to);
        return Span{phase_start_ + static_cast<Word>(into_)};
      }
      calls -= std::min(calls, (end - from) * piece.calls_q72 >> 32);
    }
    phase_start_ += phase_length_;
    if (end == 0 || phase_start_ > until_) return std::nullopt;
    into_ = 0;
    rest_ = 0;
    if (++phase_ == m.pieces.size()) phase_ = 0;
    begin_phase();
    if (phase_ != 0 || m.phases) continue;
    if (!skip_periods(m.period, m.period_calls_q72, phase_start_, calls)) return std::nullopt;
  }
}

}  // namespace sluice::sim
