// One number over draws of every model. It must be the same in every build on every machine; a
// change of a model changes it, and is meant to be noticed here.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/sim/arrivals.hpp"
#include "sluice/sim/choice.hpp"
#include "sluice/sim/delay.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/trace.hpp"

namespace sluice::test {

inline constexpr std::uint64_t pinned_models = 0x4a172eda50cc7a9d;

inline void fold_delays(sim::TraceHash& trace) {
  using sim::Delay;
  const Span ms{1'000};
  std::vector<Delay> delays{Delay::constant(ms),
                            Delay::uniform(ms, 9 * ms),
                            Delay::exponential(ms),
                            Delay::log_normal(ms, 9 * ms),
                            Delay::normal(20 * ms, 7 * ms),
                            Delay::empirical({{0, ms}, {0.1, 2 * ms}, {0.9, 3 * ms}, {1, 9 * ms}})};
  for (const double shape : {0.1, 0.3, 0.7, 1.0, 1.9, 33.3}) {
    delays.push_back(Delay::gamma(20 * ms, shape));
    delays.push_back(Delay::pareto(ms, shape));
    delays.push_back(Delay::weibull(20 * ms, shape));
  }
  delays.push_back(Delay::mixture({{0.3, delays[3]}, {1.7, delays.back()}, {0.01, delays[6]}}));
  for (std::uint32_t i = 0; i < delays.size(); ++i) {
    SeededRng rng = sim::stream(1, i, 1);
    trace.fold(to_time(0), i, 1, static_cast<std::uint64_t>(delays[i].mean().count()));
    for (int n = 0; n < 1'000; ++n) {
      trace.fold(to_time(0), i, 2, static_cast<std::uint64_t>(delays[i].sample(rng).count()));
    }
  }
}

inline void fold_arrivals(sim::TraceHash& trace) {
  using sim::Arrivals;
  const Span second{1'000'000};
  const sim::Rate rate{9'000, second};
  const std::vector<Arrivals> all{Arrivals::constant(rate),
                                  Arrivals::poisson(rate),
                                  Arrivals::poisson(rate).scaled(13, 10),
                                  Arrivals::on_off(rate, {1, second}, second / 7),
                                  Arrivals::diurnal(rate, 0.7, second),
                                  Arrivals::spike(rate, 7.7, second / 100, second),
                                  Arrivals::trace(std::vector<Span>(1'000, second)).scaled(4, 3)};
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    sim::ArrivalProcess calls(all[i], sim::stream(1, i, 2));
    for (int n = 0; n < 5'000; ++n) {
      const auto next = calls.next();
      if (!next) break;
      trace.fold(to_time(next->count()), i, 3, static_cast<std::uint64_t>(n));
    }
  }
}

inline void fold_choices(sim::TraceHash& trace) {
  using sim::Choice;
  const std::vector<Choice> choices{Choice::uniform(1'000), Choice::zipf(1'000, 0.9),
                                    Choice::zipf(1'000, 2.2), Choice::hot(1'000, 0.3),
                                    Choice::weights({0.1, 0.7, 1'000, 0, 33.3})};
  for (std::uint32_t i = 0; i < choices.size(); ++i) {
    SeededRng rng = sim::stream(1, i, 3);
    for (int n = 0; n < 1'000; ++n) trace.fold(to_time(n), i, 4, choices[i].draw(rng));
  }
}

/// Delays whose state persists, and arrivals in phases of random lengths.
inline void fold_phases(sim::TraceHash& trace) {
  using sim::Arrivals;
  using sim::Delay;
  const Span ms{1'000};
  const Delay fast = Delay::exponential(ms);
  const Delay slow = Delay::uniform(9 * ms, 20 * ms);
  const std::vector<Delay> delays{Delay::phases(fast, 90 * ms, slow, 20 * ms),
                                  Delay::runs(fast, 12.3, slow, 4.5)};
  for (std::uint32_t i = 0; i < delays.size(); ++i) {
    sim::DelayProcess process(delays[i], sim::stream(1, i, 4));
    SeededRng rng = sim::stream(1, i, 5);
    for (int n = 0; n < 2'000; ++n) {
      const Time at = to_time(n * 7'000);
      trace.fold(at, i, 5, static_cast<std::uint64_t>(process.sample(at, rng).count()));
    }
  }
  const Arrivals all = Arrivals::mmpp({{900, 1'000 * ms}, 200 * ms}, {{10, 1'000 * ms}, 700 * ms},
                                      sim::stream(1, 0, 6));
  sim::ArrivalProcess calls(all, sim::stream(1, 0, 2));
  for (int n = 0; n < 5'000; ++n) {
    trace.fold(to_time(calls.next()->count()), 0, 6, static_cast<std::uint64_t>(n));
  }
}

inline std::uint64_t trace_of_models() {
  sim::TraceHash trace;
  fold_delays(trace);
  fold_arrivals(trace);
  fold_choices(trace);
  fold_phases(trace);
  return trace.value();
}

}  // namespace sluice::test
