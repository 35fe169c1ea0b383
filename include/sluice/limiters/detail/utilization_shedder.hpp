// How the calls of an UtilizationShedder are made.
#pragma once

#include "sluice/detail/verb.hpp"
#include "sluice/limiters/utilization_shedder.hpp"

namespace sluice {

/// Verbs of the calls; see sluice/detail/verb.hpp.
struct UtilizationShedder::Verbs {
  struct AsReport {
    UtilizationReport operator()(const Outcome& outcome, std::error_code& error) const {
      return error ? UtilizationReport{} : shedder->report_of(outcome);
    }
    const UtilizationShedder* shedder;
  };
  using Report = detail::StepVerb<AsReport>;

  static Step sample(const UtilizationShedder& shedder, Utilization utilization) noexcept {
    return shedder.sample_step(shedder.whole(), utilization);
  }
  static Step try_acquire(const UtilizationShedder& shedder, const Key& key, detail::TextArg tier) {
    return shedder.acquire_step(key, shedder.find(tier));
  }
  static Step try_acquire(const UtilizationShedder& shedder, Tier tier) noexcept {
    return shedder.acquire_step(shedder.whole(), tier);
  }
  static Step try_acquire(const UtilizationShedder& shedder, detail::TextArg tier) {
    return try_acquire(shedder, shedder.find(tier));
  }
  static Step peek(const UtilizationShedder& shedder, const Key& key, detail::TextArg tier) {
    return shedder.peek_step(key, shedder.find(tier));
  }
  static Step peek(const UtilizationShedder& shedder, Tier tier) noexcept {
    return shedder.peek_step(shedder.whole(), tier);
  }
  static Step peek(const UtilizationShedder& shedder, detail::TextArg tier) {
    return peek(shedder, shedder.find(tier));
  }
  static Report report(const UtilizationShedder& shedder, const Key& key) {
    return {shedder.store(), shedder.peek_step(key, Tier(0)), {&shedder}};
  }
  static Report report(const UtilizationShedder& shedder) {
    return report(shedder, shedder.whole());
  }
  static Step reset(const UtilizationShedder& shedder) {
    return shedder.reset_step(shedder.whole());
  }
};

}  // namespace sluice
