// The fleet shedder, on any store: reserves a share of a fleet for critical work. See
// sluice/rules/leases.hpp for the rule.
#pragma once

#include <concepts>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/detail/lease_manager.hpp"
#include "sluice/quota.hpp"

namespace sluice {

/// The share of a fleet up to which a tier is admitted: places, or whole thousandths of the
/// capacity.
class FleetShare {
 public:
  /// Throw std::invalid_argument unless the value is 1 to 100, 1 to 1000 or 1 to 2^52,
  /// respectively.
  static FleetShare percent(Word percent);
  static FleetShare per_mille(Word per_mille);
  static FleetShare places(Word places);
  template <std::floating_point T>
  static FleetShare percent(T) = delete;
  template <std::floating_point T>
  static FleetShare per_mille(T) = delete;
  template <std::floating_point T>
  static FleetShare places(T) = delete;

  /// The share of `capacity` places, rounded down.
  [[nodiscard]] constexpr Word of(Word capacity) const noexcept {
    if (!is_part_) return amount_;
    return capacity / 1000 * amount_ + capacity % 1000 * amount_ / 1000;
  }

 private:
  constexpr FleetShare(Word amount, bool is_part) noexcept : amount_(amount), is_part_(is_part) {}
  Word amount_;
  bool is_part_;
};

/// A class of work and the share of the fleet up to which it is admitted.
struct Tier {
  Tier(detail::TextArg named, FleetShare of_places) : name(named.view()), share(of_places) {}

  std::string name;
  FleetShare share;
};

/// Limits the work in progress of a whole fleet by priority: all tiers are counted together, and a
/// tier is admitted while the total stays within its share. The places above the share of a tier
/// are reserved for the more critical tiers.
///
///     FleetShedder fleet{*store, "api", 400, {{"critical", FleetShare::percent(100)},
///                                             {"sheddable", FleetShare::percent(80)}}};
///     if (Lease lease = fleet.try_acquire("sheddable")) serve();
///     else refuse_503("full: ", fleet.tier_of(lease.decision()), lease.decision().retry_after);
///
/// `retry_after` is when enough leases will have expired if none is released: an upper bound of the
/// wait. Shedders of the same name on the same store count together, also with different capacities
/// or tiers, as during a change of either. Immutable: one object serves any number of threads.
/// Costs what a ConcurrencyLimiter costs, all on one key, and a search of the tier's name. Borrows
/// or owns its store: see StoreHandle.
class FleetShedder {
 public:
  static constexpr const char* type_name = "FleetShedder";  ///< in messages of exceptions

  static constexpr std::size_t max_tiers = LeasesRule::max_tier + 1;

  /// `most_critical_first`: 1 to max_tiers tiers, in the order of a UtilizationShedder's, each with
  /// a name of its own and a share of at least one place, at most that of the tier before it.
  /// `capacity`: 1 to 2^52. Throws std::invalid_argument if that does not hold, or if `name` or an
  /// option is out of range.
  template <CountType T>
  FleetShedder(const StoreHandle& store, detail::TextArg name, T capacity,
               std::vector<Tier> most_critical_first, const LeaseOptions& options = {})
      : FleetShedder(store, name, detail::Given(capacity), std::move(most_critical_first),
                     options) {}
  template <std::floating_point T>
  FleetShedder(const StoreHandle&, detail::TextArg, T, std::vector<Tier>,
               const LeaseOptions& = {}) = delete;

  /// Acquires a lease of `weight` places for work of this tier, if its share has room. Throws
  /// std::invalid_argument if there is no such tier, std::system_error if the store could not
  /// decide or if the weight exceeds the share.
  Lease try_acquire(detail::TextArg tier, Cost weight = 1) const;
  /// The same; an unknown tier fails with Errc::invalid_argument.
  Lease try_acquire(detail::TextArg tier, std::error_code& error) const noexcept;
  Lease try_acquire(detail::TextArg tier, Cost weight, std::error_code& error) const noexcept;
  /// Under an id of the caller's; see ConcurrencyLimiter.
  Lease try_acquire(detail::TextArg tier, Cost weight, const LeaseId& id) const;
  Lease try_acquire(detail::TextArg tier, Cost weight, const LeaseId& id,
                    std::error_code& error) const noexcept;

  /// The decision that try_acquire() would make; changes nothing.
  [[nodiscard]] Decision peek(detail::TextArg tier, Cost weight = 1) const;
  [[nodiscard]] Decision peek(detail::TextArg tier, std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(detail::TextArg tier, Cost weight,
                              std::error_code& error) const noexcept;

  /// Admits no work of any tier until `span` from now; see ConcurrencyLimiter::block().
  Decision block(SpanArg span) const;
  Decision block(SpanArg span, std::error_code& error) const noexcept;

  /// Revokes all leases, and ends a block.
  void reset() const;
  void reset(std::error_code& error) const noexcept;

  /// Steps for plans, and a lease from the outcome of a plan; see ConcurrencyLimiter. `key` is one
  /// with the tag of the plan. Throw std::invalid_argument if there is no such tier.
  [[nodiscard]] Step acquire_step(detail::TextArg tier, const Key& key, const LeaseId& id,
                                  Cost weight = 1) const;
  [[nodiscard]] Step peek_step(detail::TextArg tier, const Key& key, Cost weight = 1) const;
  static constexpr std::size_t output = 4;
  Lease adopt(detail::TextArg tier, const KeyArg& key, const LeaseId& id, Cost weight,
              const Decision& decision, std::span<const Word> words, Time asked_at) const;

  /// The tier that a decision is about: in a refusal, the one whose share was full. Empty if this
  /// shedder has no such tier.
  [[nodiscard]] std::string_view tier_of(const Decision& decision) const noexcept;
  /// The share of a tier in places. Throws std::invalid_argument if there is no such tier.
  [[nodiscard]] Word share_of(detail::TextArg tier) const;

  /// The key under which the fleet is counted: the shedder's name as tag and as name.
  [[nodiscard]] Key key() const noexcept { return {leases_.name(), leases_.name()}; }
  [[nodiscard]] Word capacity() const noexcept { return capacity_; }
  [[nodiscard]] const std::string& name() const noexcept { return leases_.name(); }
  [[nodiscard]] const LeaseOptions& options() const noexcept { return leases_.options(); }
  [[nodiscard]] Store& store() const noexcept { return leases_.store(); }

  // For the library; see sluice/limiters/detail/fleet_shedder.hpp.
  struct Verbs;

 private:
  using Share = detail::LeaseManager::Share;

  FleetShedder(const StoreHandle& store, detail::TextArg name, detail::Given capacity,
               std::vector<Tier> most_critical_first, const LeaseOptions& options);

  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, store(), step);
  }

  /// The share of a tier; its limit is 0 if there is no such tier.
  [[nodiscard]] Share find(detail::TextArg tier) const noexcept;
  [[nodiscard]] Share known(detail::TextArg tier) const;

  detail::LeaseManager leases_;
  Word capacity_;
  std::vector<Tier> tiers_;
};

}  // namespace sluice

#include "sluice/limiters/detail/fleet_shedder.hpp"
