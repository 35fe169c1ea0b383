// Keeps a share of a fleet for its critical work. See sluice/rules/leases.hpp for the rule.
#pragma once

#include <string_view>
#include <vector>

#include "sluice/detail/lease_manager.hpp"

namespace sluice {

/// How much of a fleet may be in use for a tier to be admitted: places, or whole thousandths.
class FleetShare {
 public:
  /// Throw std::invalid_argument outside 1 to 100, 1 to 1000 and 1 to 2^52.
  static FleetShare percent(Word percent);
  static FleetShare per_mille(Word per_mille);
  static FleetShare places(Word places);

  /// Of so many places, rounded down.
  [[nodiscard]] constexpr Word of(Word capacity) const noexcept {
    if (!is_part_) return amount_;
    return capacity / 1000 * amount_ + capacity % 1000 * amount_ / 1000;
  }

 private:
  constexpr FleetShare(Word amount, bool is_part) noexcept : amount_(amount), is_part_(is_part) {}
  Word amount_;
  bool is_part_;
};

/// A class of work.
struct Tier {
  std::string name;
  FleetShare share;
};

/// Counts all work of a fleet in one set of leases, and admits each tier while what is in use, of
/// all tiers together, stays within its share. What is above the share of a tier is kept for those
/// before it.
///
///     FleetShedder fleet{*store, "api", 400, {{"critical", FleetShare::percent(100)},
///                                             {"sheddable", FleetShare::percent(80)}}};
///     if (Lease lease = fleet.try_acquire("sheddable")) serve();
///     else refuse_503("full: ", fleet.tier_of(lease.decision()), lease.decision().retry_after);
///
/// retry_after is when enough leases will have expired if nobody gives one back: the latest moment
/// to try again, seldom the first. Shedders of the same name on the same store count together, also
/// with a capacity or tiers that differ, as during a change of either.
/// Immutable: one object serves any number of threads. Costs what a ConcurrencyLimiter costs, all
/// on one key, and a search of the tier's name. Borrows or owns its store: see StoreHandle.
class FleetShedder {
 public:
  static constexpr const char* type_name = "FleetShedder";  ///< in texts of exceptions

  static constexpr std::size_t max_tiers = LeasesRule::max_tier + 1;

  /// Tiers in order, the most critical first, each with a share of at least one place and no more
  /// than the one before it. Throws std::invalid_argument if that does not hold, if there is none
  /// or more than max_tiers, if two have one name or one has none, or if `capacity` (1 to 2^52),
  /// `name` or an option is out of range.
  FleetShedder(const StoreHandle& store, std::string name, Word capacity, std::vector<Tier> tiers,
               const LeaseOptions& options = {});

  /// A lease for work of this tier, of `weight` places, if its share has room. Throws
  /// std::invalid_argument if there is no such tier, std::system_error if the store could not
  /// decide or if the weight exceeds the share.
  Lease try_acquire(std::string_view tier, Cost weight = 1) const;
  /// The same; an unknown tier is Errc::invalid_argument.
  Lease try_acquire(std::string_view tier, std::error_code& error) const noexcept;
  Lease try_acquire(std::string_view tier, Cost weight, std::error_code& error) const noexcept;
  /// Under an id of the caller's; see ConcurrencyLimiter.
  Lease try_acquire(std::string_view tier, Cost weight, const LeaseId& id) const;
  Lease try_acquire(std::string_view tier, Cost weight, const LeaseId& id,
                    std::error_code& error) const noexcept;

  /// What try_acquire() would answer; changes nothing.
  [[nodiscard]] Decision peek(std::string_view tier, Cost weight = 1) const;
  [[nodiscard]] Decision peek(std::string_view tier, std::error_code& error) const noexcept;
  [[nodiscard]] Decision peek(std::string_view tier, Cost weight,
                              std::error_code& error) const noexcept;

  /// No work of any tier is admitted until `span` from now; see ConcurrencyLimiter::block().
  Decision block(Span span) const;
  Decision block(Span span, std::error_code& error) const noexcept;

  /// Takes all leases from their holders, and ends a block.
  void reset() const;
  void reset(std::error_code& error) const noexcept;

  /// Steps for plans, and a lease from the outcome of one; see ConcurrencyLimiter. `key` is
  /// whatever the plan's tag asks for. Throw std::invalid_argument if there is no such tier.
  [[nodiscard]] Step acquire_step(std::string_view tier, const Key& key, const LeaseId& id,
                                  Cost weight = 1) const;
  [[nodiscard]] Step peek_step(std::string_view tier, const Key& key, Cost weight = 1) const;
  static constexpr std::size_t output = 4;
  Lease adopt(std::string_view tier, const Key& key, const LeaseId& id, Cost weight,
              const Decision& decision, std::span<const Word> told, Time asked_at) const;

  /// The tier that a decision is about: in a refusal, the one whose share was full. Empty if this
  /// shedder has no such tier.
  [[nodiscard]] std::string_view tier_of(const Decision& decision) const noexcept;
  /// The share of a tier in places. Throws std::invalid_argument if there is no such tier.
  [[nodiscard]] Word share_of(std::string_view tier) const;

  /// Where the fleet is counted: the shedder's name as tag and name.
  [[nodiscard]] Key key() const noexcept { return {manager_.name(), manager_.name()}; }
  [[nodiscard]] Word capacity() const noexcept { return capacity_; }
  [[nodiscard]] const std::string& name() const noexcept { return manager_.name(); }
  [[nodiscard]] const LeaseOptions& options() const noexcept { return manager_.options(); }
  [[nodiscard]] Store& store() const noexcept { return manager_.store(); }

 private:
  using Share = detail::LeaseManager::Share;

  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, store(), step);
  }

  /// The share of a tier; a limit of 0 if there is none.
  [[nodiscard]] Share find(std::string_view tier) const noexcept;
  [[nodiscard]] Share known(std::string_view tier) const;

  detail::LeaseManager manager_;
  Word capacity_;
  std::vector<Tier> tiers_;
};

}  // namespace sluice
