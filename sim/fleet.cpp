// The public class Fleet, and the validation of its options.
#include "sluice/sim/fleet.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/fleet_model.hpp"

namespace sluice::sim {
namespace {

void require(const char* what, Word value, Word least, Word most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(std::string(what) + " must be " + std::to_string(least) + " to " +
                              std::to_string(most) + ", got " + std::to_string(value));
}

constexpr Word hour_us = 3'600'000'000;

const FleetOptions& checked(const FleetOptions& o) {
  require("the limit", o.limit, 5, 10'000'000);
  require("the number of workers", o.workers, 1, std::min<Word>(o.limit / 5, 100'000));
  require("the window in us", o.window.count(), 1'000, hour_us);
  require("the burst", o.burst, 1, o.limit / 2);
  require("the largest batch", o.largest_batch, 1, o.burst);
  require("the busy demand", o.demand.busy, 1, 100'000'000);
  require("the calm demand", o.demand.calm, 1, 100'000'000);
  require("the phase in us", o.demand.phase.count(), 1'000, 24 * hour_us);
  require("the back-off's base in us", o.backoff.base.count(), 1, hour_us);
  require("the back-off's cap in us", o.backoff.cap.count(), o.backoff.base.count(), hour_us);
  return o;
}

}  // namespace

Quota safe_quota(Word limit, Span window, Word burst, Span jitter) {
  return Quota::per(limit - burst, window + jitter).burst(burst);
}

Fleet::Fleet(const FleetOptions& options) : model_(std::make_unique<Model>(checked(options))) {}
Fleet::~Fleet() = default;

void Fleet::run_for(Span span) { model_->run_for(span); }
FleetResult Fleet::result() const { return model_->result(); }
std::uint64_t Fleet::events() const noexcept { return model_->events(); }
const Quota& Fleet::quota() const noexcept { return model_->quota(); }

}  // namespace sluice::sim
