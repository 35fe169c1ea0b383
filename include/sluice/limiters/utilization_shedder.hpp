// The utilization shedder, on any store. See sluice/rules/utilization.hpp for the rule.
#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/quota.hpp"
#include "sluice/rng.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

/// A utilization from 0.0 (idle) to 1.0 (fully busy), in millionths. A value out of range (percent,
/// NaN) fails the call with Errc::invalid_argument. Integers do not compile, because 1 could mean
/// all or one percent.
class Utilization {
 public:
  template <std::floating_point T>
  constexpr Utilization(T share) noexcept  // NOLINT(google-explicit-constructor): converts
      : ppm_(share >= 0 && share <= 1
                 ? static_cast<Word>(static_cast<double>(share) * UtilizationRule::one + 0.5)
                 : Word{-1}) {}
  template <std::integral T>
  Utilization(T) = delete;

  /// `part` of `whole` in any unit: 7 of 10 workers, 80 ms of 100 ms. More than the whole is 1.0,
  /// zero of zero is 0.0; negative values are invalid.
  [[nodiscard]] static constexpr Utilization ratio(double part, double whole) noexcept {
    if (part == 0 && whole == 0) return 0.0;
    if (!(part >= 0 && whole >= 0)) return -1.0;
    return part >= whole ? 1.0 : part / whole;
  }

  /// Millionths, 0 to 1,000,000; -1 if it is invalid.
  [[nodiscard]] constexpr Word ppm() const noexcept { return ppm_; }

 private:
  Word ppm_;
};

/// Options of a UtilizationShedder. The defaults are those of the design in
/// sluice/rules/utilization.hpp.
struct UtilizationOptions {
  /// Shedding decreases below `good` and increases above `bad`, in proportion to the distance;
  /// between them it decays slowly. 0 < good <= bad < 1.
  double good = 0.7;
  double bad = 0.8;
  /// How long a utilization of 1.0 lasts before the first call is shed. Zero or more.
  Span grace = std::chrono::seconds{28};
  /// How much longer a utilization of 1.0 lasts until all tiers but the first are shed completely.
  /// 1 us or more; grace + full_after at most an hour.
  Span full_after = std::chrono::seconds{120};
  /// How long full shedding takes to decay to none, between the thresholds or without samples: at
  /// least grace + full_after, at most 30 days.
  Span rest_after = std::chrono::minutes{10};
  /// A longer gap between two samples counts as this long; after this time without a sample,
  /// shedding decays. 2.5 times the sampling period is a good choice. 1 us to an hour.
  Span max_gap = std::chrono::seconds{20};
  /// The tiers, which are classes of calls; the first is never shed. 2 to 65,536 names, all
  /// different, none empty.
  std::vector<std::string> most_critical_first{"critical", "sheddable"};
};

/// The state of a shedder at one time.
struct UtilizationReport {
  /// -grace / full_after at rest, 0 when the grace is used up, 1 when everything but the first
  /// tier is shed.
  double amount = 0;
  /// The probability with which a call of each tier is shed, in the order of the tiers.
  std::vector<double> probabilities;
  /// None: there was no sample, or the level has decayed to rest since.
  std::optional<Time> last_sample;
  /// The time until rest without further samples.
  Span rests_after{0};
};

/// Sheds the least important calls of an overloaded service: the probability grows slowly while the
/// overload lasts, and falls slowly afterwards.
///
///     UtilizationShedder shedder{*store, "api",
///                                {.most_critical_first = {"payments", "analytics", "test"}}};
///     shedder.sample(Utilization::ratio(busy, workers));               // every 8 s
///     if (!shedder.try_acquire("analytics")) return unavailable();     // each call
///
/// It needs regular samples: see sluice/limiters/sensors.hpp and sluice/limiters/sampler.hpp. On a
/// store that processes share, their samples move one common level: each accounts for the time
/// since the previous sample of any process. On a memory store of its own, each process sheds by
/// itself. Calls without a key are about the service as a whole, Key{NAME, "utilization"}; with a
/// key, such as a host, each key has its own level.
///
/// A refusal has no wait: retry_after is 0. Decision::part is the tier, `limit` is 1,000,000 and
/// `remaining` is the part of it that is not shed in this tier.
///
/// Immutable: one object serves any number of threads, if the generator does. Each call is one
/// store operation, O(1); only sample() and reset() write. Borrows or owns its store: see
/// StoreHandle. REQUIRES: the generator outlives the shedder.
class UtilizationShedder {
 public:
  static constexpr const char* type_name = "UtilizationShedder";  ///< in messages of exceptions

  /// A tier of one shedder, looked up once for frequent calls.
  class Tier {
   public:
    [[nodiscard]] constexpr Word index() const noexcept { return index_; }

   private:
    friend class UtilizationShedder;
    constexpr explicit Tier(Word index) noexcept : index_(index) {}
    Word index_;  // -1: there is no such tier
  };

  /// Throws std::invalid_argument if an option is out of its range, or the name empty or longer
  /// than 1 MiB. `rng` selects the calls that are shed; without it, rng_of() the store's clock
  /// does.
  UtilizationShedder(const StoreHandle& store, detail::TextArg name,
                     UtilizationOptions options = {});
  UtilizationShedder(const StoreHandle& store, detail::TextArg name, UtilizationOptions options,
                     Rng& rng)
      : UtilizationShedder(store, name, std::move(options)) {
    rng_ = &rng;
  }

  /// Throws std::invalid_argument if there is no such tier. O(tiers).
  [[nodiscard]] Tier tier(detail::TextArg name) const;

  /// Records the utilization now. Always allowed. Throws std::system_error if the store failed, or
  /// if the utilization is out of range (Errc::invalid_argument).
  Decision sample(Utilization utilization) const { return sample(whole(), utilization); }
  Decision sample(const KeyArg& key, Utilization utilization) const {
    return decide_as("sample", sample_step(key, utilization));
  }
  Decision sample(Utilization utilization, std::error_code& error) const noexcept {
    return sample(whole(), utilization, error);
  }
  Decision sample(const KeyArg& key, Utilization utilization,
                  std::error_code& error) const noexcept {
    return decide(*store_, sample_step(key, utilization), error);
  }

  /// Decides whether a call of this tier may proceed, by one random draw; changes nothing. Throws
  /// std::system_error if the store failed, or if there is no such tier (Errc::invalid_argument),
  /// and whatever the generator throws.
  [[nodiscard]] Decision try_acquire(detail::TextArg tier) const {
    return try_acquire(whole(), tier);
  }
  [[nodiscard]] Decision try_acquire(Tier tier) const { return try_acquire(whole(), tier); }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, detail::TextArg tier) const {
    return try_acquire(key, named_tier("try_acquire", tier));
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Tier tier) const {
    return decide_as("try_acquire", acquire_step(key, tier));
  }
  [[nodiscard]] Decision try_acquire(detail::TextArg tier, std::error_code& error) const {
    return try_acquire(whole(), tier, error);
  }
  [[nodiscard]] Decision try_acquire(Tier tier, std::error_code& error) const {
    return try_acquire(whole(), tier, error);
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, detail::TextArg tier,
                                     std::error_code& error) const {
    return try_acquire(key, find(tier), error);
  }
  [[nodiscard]] Decision try_acquire(const KeyArg& key, Tier tier, std::error_code& error) const {
    return decide(*store_, acquire_step(key, tier), error);
  }

  /// A decision without a draw: refused only if this tier is shed completely.
  [[nodiscard]] Decision peek(detail::TextArg tier) const { return peek(whole(), tier); }
  [[nodiscard]] Decision peek(Tier tier) const { return peek(whole(), tier); }
  [[nodiscard]] Decision peek(const KeyArg& key, detail::TextArg tier) const {
    return peek(key, named_tier("peek", tier));
  }
  [[nodiscard]] Decision peek(const KeyArg& key, Tier tier) const {
    return decide_as("peek", peek_step(key, tier));
  }
  [[nodiscard]] Decision peek(detail::TextArg tier, std::error_code& error) const noexcept {
    return peek(whole(), tier, error);
  }
  [[nodiscard]] Decision peek(Tier tier, std::error_code& error) const noexcept {
    return peek(whole(), tier, error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, detail::TextArg tier,
                              std::error_code& error) const noexcept {
    return peek(key, find(tier), error);
  }
  [[nodiscard]] Decision peek(const KeyArg& key, Tier tier, std::error_code& error) const noexcept {
    return decide(*store_, peek_step(key, tier), error);
  }

  /// The current state, for dashboards and alerts.
  [[nodiscard]] UtilizationReport report() const { return report(whole()); }
  [[nodiscard]] UtilizationReport report(const KeyArg& key) const;
  [[nodiscard]] UtilizationReport report(std::error_code& error) const {
    return report(whole(), error);
  }
  [[nodiscard]] UtilizationReport report(const KeyArg& key, std::error_code& error) const;

  /// Sets the level to rest at once, as if there had been no sample.
  void reset() const { reset(whole()); }
  void reset(const KeyArg& key) const { (void)decide_as("reset", reset_step(key)); }
  void reset(std::error_code& error) const noexcept { reset(whole(), error); }
  void reset(const KeyArg& key, std::error_code& error) const noexcept {
    (void)decide(*store_, reset_step(key), error);
  }

  /// The steps of these calls, for plans and for the other forms of a call. acquire_step() draws.
  [[nodiscard]] Step acquire_step(const Key& key, Tier tier) const {
    Rng& rng = rng_ != nullptr ? *rng_ : rng_of(store_->clock(), DrawFor::shedding);
    return acquire_step(key, tier,
                        static_cast<Word>(rng.below(static_cast<std::uint64_t>(shed_[2]))));
  }
  /// With your own draw, uniform from [0, full_after) in microseconds: low draws are shed.
  [[nodiscard]] Step acquire_step(const Key& key, Tier tier, Word draw) const noexcept;
  [[nodiscard]] Step peek_step(const Key& key, Tier tier) const noexcept;
  [[nodiscard]] Step sample_step(const Key& key, Utilization utilization) const noexcept;
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const UtilizationOptions& options() const noexcept { return options_; }
  /// The key of the service as a whole.
  [[nodiscard]] Key whole() const noexcept { return {name_, "utilization"}; }

  // For the library; see sluice/limiters/detail/utilization_shedder.hpp.
  struct Verbs;

 private:
  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, *store_, step);
  }
  [[nodiscard]] UtilizationReport report_of(const Outcome& outcome) const;
  [[nodiscard]] Tier find(std::string_view name) const noexcept;
  [[nodiscard]] Tier named_tier(const char* verb, std::string_view name) const;
  [[nodiscard]] std::string no_tier(std::string_view name) const;
  [[nodiscard]] detail::LimiterKey named(const Key& key) const noexcept {
    return {key.with_default_name(name_), store_.address()};
  }

  StoreHandle store_;
  Rng* rng_ = nullptr;  // null: rng_of() the store's clock
  std::string name_;
  UtilizationOptions options_;
  Arguments sample_{};  // each call sets the last one, the utilization
  Arguments shed_{};    // each call sets the last two, tier and draw
};

}  // namespace sluice

#include "sluice/limiters/detail/utilization_shedder.hpp"
