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

/// How busy something is, from 0.0 (idle) to 1.0 (wholly busy), in millionths. What is not in that
/// range (percent, NaN) is answered with Errc::invalid_argument. Whole numbers do not compile: it
/// would not be clear whether 1 is all or one percent.
class Utilization {
 public:
  template <std::floating_point T>
  constexpr Utilization(T share) noexcept  // NOLINT(google-explicit-constructor): converts
      : ppm_(share >= 0 && share <= 1
                 ? static_cast<Word>(static_cast<double>(share) * UtilizationRule::one + 0.5)
                 : Word{-1}) {}
  template <std::integral T>
  Utilization(T) = delete;

  /// `part` of `whole`, of any measure: 7 of 10 workers, 80 ms of 100 ms. Beyond the whole counts
  /// as 1.0. Nothing of nothing is 0.0; a negative number or whole is invalid.
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

/// How a UtilizationShedder behaves. The defaults are those of the design it follows.
struct UtilizationOptions {
  /// Below `good` the shedding recedes, above `bad` it grows, each in proportion. In the dead zone
  /// between them it decays slowly. 0 < good <= bad < 1.
  double good = 0.7;
  double bad = 0.8;
  /// How long utilization 1.0 is borne before the first call is shed. Zero or more.
  Span grace = std::chrono::seconds{28};
  /// How much longer utilization 1.0 takes until all tiers but the last are shed wholly. 1 us or
  /// more; grace + full_after at most an hour.
  Span full_after = std::chrono::seconds{120};
  /// How long full shedding takes to come to rest in the dead zone, or when samples stop: at least
  /// grace + full_after, at most 30 days.
  Span rest_after = std::chrono::minutes{10};
  /// Samples further apart than this count as this far apart; after so long without a sample the
  /// shedding decays. 2.5 times the sampling period is a good choice, 1 us to an hour.
  Span max_gap = std::chrono::seconds{20};
  /// What kinds of call there are, least important first; the last is never shed. 2 to 65,536
  /// names, all different, none empty.
  std::vector<std::string> tiers{"sheddable", "critical"};
};

/// What a shedder does at one moment.
struct UtilizationReport {
  /// -grace / full_after at rest, 0 when the grace is used up, 1 when everything but the last tier
  /// is shed.
  double amount = 0;
  /// With which probability a call of each tier is shed, in the order of the tiers.
  std::vector<double> probabilities;
  /// None: never sampled, or so long ago that it means nothing any more.
  std::optional<Time> last_sample;
  /// Until it rests, if no sample comes.
  Span rests_after{0};
};

/// Refuses the least important calls of what has been overloaded for long, with a probability that
/// grows slowly, and takes them back slowly.
///
///     UtilizationShedder shedder{*store, "api", {.tiers = {"test", "analytics", "payments"}}};
///     shedder.sample(Utilization::ratio(busy, workers));               // every 8 s
///     if (!shedder.try_acquire("analytics")) return unavailable();     // each call
///
/// Something must sample it regularly: see sluice/limiters/sensors.hpp and
/// sluice/limiters/sampler.hpp. On a store that processes share, their samples move one level
/// together: each counts for the time since the one before it, whoever took that. On a memory store
/// of its own, a process sheds for itself. Without a key, a call is about the service as a whole:
/// Key{NAME, "utilization"}; with one, such as a host, each key has a level of its own.
///
/// A refusal has no time to wait for: retry_after is 0. Decision::part is the tier, `limit` is
/// 1,000,000 and `remaining` the part of it that is not shed of this tier.
///
/// Immutable: one object serves any number of threads, if the generator does. Each call is one
/// store operation, O(1); only sample() and reset() write. Borrows or owns its store: see
/// StoreHandle. REQUIRES: the generator outlives the shedder.
class UtilizationShedder {
 public:
  static constexpr const char* type_name = "UtilizationShedder";  ///< in texts of exceptions

  /// A tier of one shedder: look it up once for calls that are made often.
  class Tier {
   public:
    [[nodiscard]] constexpr Word index() const noexcept { return index_; }

   private:
    friend class UtilizationShedder;
    constexpr explicit Tier(Word index) noexcept : index_(index) {}
    Word index_;  // -1: there is no such tier
  };

  /// Throws std::invalid_argument if an option is out of its range, or the name empty or longer
  /// than 1 MiB. `rng` draws which calls are shed; without it, rng_of() the store's clock.
  UtilizationShedder(const StoreHandle& store, detail::TextArg name,
                     UtilizationOptions options = {});
  UtilizationShedder(const StoreHandle& store, detail::TextArg name, UtilizationOptions options,
                     Rng& rng)
      : UtilizationShedder(store, name, std::move(options)) {
    rng_ = &rng;
  }

  /// Throws std::invalid_argument if there is no such tier. O(tiers).
  [[nodiscard]] Tier tier(detail::TextArg name) const;

  /// Notes how busy it is now. Always allowed. Throws std::system_error if the store could not take
  /// it, or if the utilization is none (Errc::invalid_argument).
  Decision sample(Utilization utilization) const { return sample(whole(), utilization); }
  Decision sample(const Key& key, Utilization utilization) const {
    return decide_as("sample", sample_step(key, utilization));
  }
  Decision sample(Utilization utilization, std::error_code& error) const noexcept {
    return sample(whole(), utilization, error);
  }
  Decision sample(const Key& key, Utilization utilization, std::error_code& error) const noexcept {
    return decide(*store_, sample_step(key, utilization), error);
  }

  /// May a call of this tier go ahead? One draw decides; it changes nothing. Throws
  /// std::system_error if the store could not decide, or if there is no such tier
  /// (Errc::invalid_argument), and whatever the generator throws.
  [[nodiscard]] Decision try_acquire(detail::TextArg tier) const {
    return try_acquire(whole(), tier);
  }
  [[nodiscard]] Decision try_acquire(Tier tier) const { return try_acquire(whole(), tier); }
  [[nodiscard]] Decision try_acquire(const Key& key, detail::TextArg tier) const {
    return try_acquire(key, named_tier("try_acquire", tier));
  }
  [[nodiscard]] Decision try_acquire(const Key& key, Tier tier) const {
    return decide_as("try_acquire", acquire_step(key, tier));
  }
  [[nodiscard]] Decision try_acquire(detail::TextArg tier, std::error_code& error) const {
    return try_acquire(whole(), tier, error);
  }
  [[nodiscard]] Decision try_acquire(Tier tier, std::error_code& error) const {
    return try_acquire(whole(), tier, error);
  }
  [[nodiscard]] Decision try_acquire(const Key& key, detail::TextArg tier,
                                     std::error_code& error) const {
    return try_acquire(key, find(tier), error);
  }
  [[nodiscard]] Decision try_acquire(const Key& key, Tier tier, std::error_code& error) const {
    return decide(*store_, acquire_step(key, tier), error);
  }

  /// Draws nothing: refused only if this tier is wholly shed.
  [[nodiscard]] Decision peek(detail::TextArg tier) const { return peek(whole(), tier); }
  [[nodiscard]] Decision peek(Tier tier) const { return peek(whole(), tier); }
  [[nodiscard]] Decision peek(const Key& key, detail::TextArg tier) const {
    return peek(key, named_tier("peek", tier));
  }
  [[nodiscard]] Decision peek(const Key& key, Tier tier) const {
    return decide_as("peek", peek_step(key, tier));
  }
  [[nodiscard]] Decision peek(detail::TextArg tier, std::error_code& error) const noexcept {
    return peek(whole(), tier, error);
  }
  [[nodiscard]] Decision peek(Tier tier, std::error_code& error) const noexcept {
    return peek(whole(), tier, error);
  }
  [[nodiscard]] Decision peek(const Key& key, detail::TextArg tier,
                              std::error_code& error) const noexcept {
    return peek(key, find(tier), error);
  }
  [[nodiscard]] Decision peek(const Key& key, Tier tier, std::error_code& error) const noexcept {
    return decide(*store_, peek_step(key, tier), error);
  }

  /// How much is shed now, for displays and alarms.
  [[nodiscard]] UtilizationReport report() const { return report(whole()); }
  [[nodiscard]] UtilizationReport report(const Key& key) const;
  [[nodiscard]] UtilizationReport report(std::error_code& error) const {
    return report(whole(), error);
  }
  [[nodiscard]] UtilizationReport report(const Key& key, std::error_code& error) const;

  /// Brings it to rest at once, as if it had never been sampled.
  void reset() const { reset(whole()); }
  void reset(const Key& key) const { (void)decide_as("reset", reset_step(key)); }
  void reset(std::error_code& error) const noexcept { reset(whole(), error); }
  void reset(const Key& key, std::error_code& error) const noexcept {
    (void)decide(*store_, reset_step(key), error);
  }

  /// The steps of these calls, for plans and for the other forms of a call. acquire_step() draws.
  [[nodiscard]] Step acquire_step(const Key& key, Tier tier) const {
    Rng& rng = rng_ != nullptr ? *rng_ : rng_of(store_->clock(), DrawFor::shedding);
    return acquire_step(key, tier,
                        static_cast<Word>(rng.below(static_cast<std::uint64_t>(take_[2]))));
  }
  /// With a draw of your own: uniform from [0, full_after) in microseconds, shed if it is low.
  [[nodiscard]] Step acquire_step(const Key& key, Tier tier, Word draw) const noexcept;
  [[nodiscard]] Step peek_step(const Key& key, Tier tier) const noexcept;
  [[nodiscard]] Step sample_step(const Key& key, Utilization utilization) const noexcept;
  [[nodiscard]] Step reset_step(const Key& key) const noexcept;

  [[nodiscard]] Store& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const UtilizationOptions& options() const noexcept { return options_; }
  /// The key of the service as a whole.
  [[nodiscard]] Key whole() const noexcept { return {name_, "utilization"}; }

 private:
  Decision decide_as(const char* verb, const Step& step) const {
    return detail::decide_as({type_name, verb}, *store_, step);
  }
  [[nodiscard]] Tier find(std::string_view name) const noexcept;
  [[nodiscard]] Tier named_tier(const char* verb, std::string_view name) const;
  [[nodiscard]] std::string no_tier(std::string_view name) const;
  [[nodiscard]] Key named(const Key& key) const noexcept { return key.with_default_name(name_); }

  StoreHandle store_;
  Rng* rng_ = nullptr;  // null: by the clock
  std::string name_;
  UtilizationOptions options_;
  Arguments sample_{};  // utilization, the last, is filled in by each call
  Arguments take_{};    // tier and draw are
};

}  // namespace sluice
