// The tiers of the fleet shedder, and its calls.
#include "sluice/limiters/fleet_shedder.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/limiters/or_throw.hpp"
#include "src/util/quoted.hpp"

namespace sluice {
namespace {

[[noreturn]] void reject(const std::string& what) {
  throw std::invalid_argument("FleetShedder: " + what);
}

Word in_range(Word value, Word most, const char* what) {
  if (value < 1 || value > most) {
    throw std::invalid_argument("FleetShare::" + std::string(what) + " must be 1 to " +
                                std::to_string(most) + ", got " + std::to_string(value));
  }
  return value;
}

void check_tiers(const std::vector<Tier>& tiers, Word capacity) {
  if (tiers.empty() || tiers.size() > FleetShedder::max_tiers) {
    reject("needs 1 to " + std::to_string(FleetShedder::max_tiers) + " tiers, got " +
           std::to_string(tiers.size()));
  }
  Word above = capacity;
  for (auto tier = tiers.begin(); tier != tiers.end(); ++tier) {
    if (tier->name.empty()) reject("a tier needs a name");
    const auto same = [&](const Tier& other) { return other.name == tier->name; };
    if (std::any_of(tiers.begin(), tier, same))
      reject("two tiers named " + detail::quoted(tier->name));
    const Word share = tier->share.of(capacity);
    if (share < 1 || share > above) {
      reject("the share of " + detail::quoted(tier->name) + " must be 1 to " +
             std::to_string(above) + " places, which is " +
             (tier == tiers.begin() ? "the capacity" : "the share before it") + ", got " +
             std::to_string(share));
    }
    above = share;
  }
}

std::string unknown(std::string_view tier, const std::vector<Tier>& tiers) {
  std::string text = "unknown tier " + detail::quoted(tier) + "; there are";
  for (const Tier& known : tiers) text += ' ' + detail::quoted(known.name);
  return text;
}

}  // namespace

FleetShare FleetShare::percent(Word percent) {
  return {in_range(percent, 100, "percent") * 10, true};
}
FleetShare FleetShare::per_mille(Word per_mille) {
  return {in_range(per_mille, 1000, "per_mille"), true};
}
FleetShare FleetShare::places(Word places) {
  return {in_range(places, word_limit, "places"), false};
}

FleetShedder::FleetShedder(const StoreHandle& store, detail::TextArg name, detail::Given capacity,
                           std::vector<Tier> most_critical_first, const LeaseOptions& options)
    : leases_(store, name, options),
      capacity_(capacity.word()),
      tiers_(std::move(most_critical_first)) {
  if (!capacity.within(1, word_limit)) {
    reject("capacity must be 1 to 2^52, got " + to_string(capacity));
  }
  check_tiers(tiers_, capacity_);
}

FleetShedder::Share FleetShedder::find(detail::TextArg tier) const noexcept {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i].name == tier.view()) return {tiers_[i].share.of(capacity_), static_cast<Word>(i)};
  }
  return {0, 0};
}
FleetShedder::Share FleetShedder::known(detail::TextArg tier) const {
  const Share share = find(tier);
  if (share.limit == 0) reject(unknown(tier, tiers_));
  return share;
}

Lease FleetShedder::try_acquire(detail::TextArg tier, Cost weight) const {
  const Share share = known(tier);
  return detail::or_throw(
      {type_name, "try_acquire"},
      [&] { return leases_.acquire_step(key(), share, weight, LeaseId{}); },
      [&](auto& error) { return try_acquire(tier, weight, error); });
}
Lease FleetShedder::try_acquire(detail::TextArg tier, std::error_code& error) const noexcept {
  return try_acquire(tier, 1, error);
}
Lease FleetShedder::try_acquire(detail::TextArg tier, Cost weight,
                                std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, tier, weight), error);
}
Lease FleetShedder::try_acquire(detail::TextArg tier, Cost weight, const LeaseId& id) const {
  const Share share = known(tier);
  return detail::or_throw(
      {type_name, "try_acquire"}, [&] { return leases_.acquire_step(key(), share, weight, id); },
      [&](auto& error) { return try_acquire(tier, weight, id, error); });
}
Lease FleetShedder::try_acquire(detail::TextArg tier, Cost weight, const LeaseId& id,
                                std::error_code& error) const noexcept {
  return detail::run(Verbs::try_acquire(*this, tier, weight, id), error);
}

Decision FleetShedder::peek(detail::TextArg tier, Cost weight) const {
  return decide_as("peek", leases_.peek_step(key(), known(tier), weight));
}
Decision FleetShedder::peek(detail::TextArg tier, std::error_code& error) const noexcept {
  return peek(tier, 1, error);
}
Decision FleetShedder::peek(detail::TextArg tier, Cost weight,
                            std::error_code& error) const noexcept {
  return detail::run(Verbs::peek(*this, tier, weight), error);
}

Decision FleetShedder::block(SpanArg span) const {
  return decide_as("block", Verbs::block(*this, span));
}
Decision FleetShedder::block(SpanArg span, std::error_code& error) const noexcept {
  return decide(store(), Verbs::block(*this, span), error);
}

void FleetShedder::reset() const { decide_as("reset", Verbs::reset(*this)); }
void FleetShedder::reset(std::error_code& error) const noexcept {
  static_cast<void>(decide(store(), Verbs::reset(*this), error));
}

Step FleetShedder::acquire_step(detail::TextArg tier, const Key& key, const LeaseId& id,
                                Cost weight) const {
  return leases_.acquire_step(key, known(tier), weight, id);
}
Step FleetShedder::peek_step(detail::TextArg tier, const Key& key, Cost weight) const {
  return leases_.peek_step(key, known(tier), weight);
}
Lease FleetShedder::adopt(detail::TextArg tier, const KeyArg& key, const LeaseId& id, Cost weight,
                          const Decision& decision, std::span<const Word> words,
                          Time asked_at) const {
  return leases_.adopt(key, known(tier), weight, id, decision, words, asked_at);
}

std::string_view FleetShedder::tier_of(const Decision& decision) const noexcept {
  return decision.part < tiers_.size() ? std::string_view(tiers_[decision.part].name)
                                       : std::string_view();
}
Word FleetShedder::share_of(detail::TextArg tier) const { return known(tier).limit; }

}  // namespace sluice
