// Sampler: sampling times, and the results of samples.
#include "sluice/limiters/sampler.hpp"

#include <algorithm>
#include <stdexcept>

#include "sluice/detail/uncancelled.hpp"

namespace sluice {

Sampler::Sampler(const UtilizationShedder& shedder, Sensor& sensor, SamplerOptions options)
    : Sampler(shedder, shedder.whole(), sensor, options, nullptr) {}
Sampler::Sampler(const UtilizationShedder& shedder, Sensor& sensor, SamplerOptions options,
                 Rng& rng)
    : Sampler(shedder, shedder.whole(), sensor, options, &rng) {}
Sampler::Sampler(const UtilizationShedder& shedder, const KeyArg& key, Sensor& sensor,
                 SamplerOptions options)
    : Sampler(shedder, key, sensor, options, nullptr) {}
Sampler::Sampler(const UtilizationShedder& shedder, const KeyArg& key, Sensor& sensor,
                 SamplerOptions options, Rng& rng)
    : Sampler(shedder, key, sensor, options, &rng) {}

Sampler::Sampler(const UtilizationShedder& shedder, const KeyArg& key, Sensor& sensor,
                 SamplerOptions options, Rng* rng)
    : shedder_(shedder),
      sensor_(sensor),
      options_(options),
      rng_(rng),
      tag_(key.tag()),
      key_name_(key.name()),
      thread_(shedder.store().clock()) {
  const Span max_gap = shedder.options().max_gap;
  if (options_.period < Span{1} || options_.period >= max_gap) {
    throw std::invalid_argument("a sampler's period must be at least 1 us and less than max_gap (" +
                                std::to_string(max_gap.count()) + " us), got " +
                                std::to_string(options_.period.count()) + " us");
  }
}

bool Sampler::poke() noexcept {
  if (!is_due(to_word(shedder_.store().clock().coarse_now()))) return false;
  const std::unique_lock lock(sampling_, std::try_to_lock);
  if (!lock) return false;
  const detail::Uncancelled uncancelled;  // a sensor may read files
  try {
    const Word now = to_word(shedder_.store().clock().now());
    if (!is_due(now)) return false;
    due_.store(next_due(now));
    sample();
    return true;
  } catch (...) {
    counts_->failed.fetch_add(1);
    return false;
  }
}

bool Sampler::is_due(Word now) const noexcept {
  const Word due = due_.load();
  // Further ahead than any wait: the clock was set back, and sampling must continue.
  return now >= due || due - now > 2 * options_.period.count();
}

Word Sampler::next_due(Word now) {
  const Word period = options_.period.count();
  if (!options_.jitter) return now + period;
  Rng& rng = rng_ != nullptr ? *rng_ : rng_of(shedder_.store().clock(), DrawFor::sampling);
  return now + period / 2 + static_cast<Word>(rng.below(static_cast<std::uint64_t>(period) + 1));
}

void Sampler::sample() {
  const std::optional<Utilization> reading = sensor_.read();
  if (!reading) {
    counts_->failed.fetch_add(1);
    return;
  }
  const auto note = [counts = counts_](std::error_code error, const Decision&) {
    if (!error) {
      counts->taken.fetch_add(1);
      return;
    }
    counts->failed.fetch_add(1);
    const std::lock_guard lock(counts->mutex);
    counts->error = error;
  };
  decide_then(shedder_.store(), shedder_.sample_step(Key{tag_, key_name_}, *reading), note);
}

std::error_code Sampler::last_error() const {
  const std::lock_guard lock(counts_->mutex);
  return counts_->error;
}

void Sampler::start() {
  thread_.start([this] { return sample_when_due(); });
}

void Sampler::stop() noexcept { thread_.stop(); }

/// Returns when the next sample is due: in at most a period, because the clock may be set back
/// meanwhile; see is_due().
Time Sampler::sample_when_due() noexcept {
  poke();
  const Time now = shedder_.store().clock().now();
  return std::clamp(to_time(due_.load()), now + Span{1}, now + options_.period);
}

}  // namespace sluice
