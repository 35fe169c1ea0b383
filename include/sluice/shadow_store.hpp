// ShadowStore: a store with limits on trial, which decide and are told, and hold up nobody.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/detail/in_flight.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/observer.hpp"

namespace sluice {

/// A store in front of another one, on which the limiters of some names are shadows: they decide
/// and charge as always, but what they refuse goes ahead. The rest of the program stays as it is.
///
///     Metrics metrics;
///     ShadowStore trial(make_redis_store(url), metrics, {"api-50"});
///     ObservedStore store(trial, metrics);
///     TokenBucket now(store, "api", Quota::per_second(100));
///     TokenBucket next(store, "api-50", Quota::per_second(50));
///     acquire({{now, account}, {next, account}}, 1s);   // as if `next` were not there
///
/// The observer is told each refusal of a shadow whose call went ahead: DecisionEvent::is_shadow,
/// `sluice_shadow_refusals_total` of Metrics. In a plan of several limits the others are asked
/// first; the shadows only if these allow it, each on its own: a shadow charges nothing for what
/// others refuse, and ends no plan. A refusal is answered as by an unlimited limit: nothing is
/// charged, settle() and cancel() of it do nothing, and its lease holds nothing. If the store
/// fails, or the cost is above a shadow's limit, the call goes ahead as well; other errors of the
/// request, such as a negative cost, fail it. peek(), refunds and changes of a shadow are as
/// always, and so is a SlotLock.
///
/// A plan with shadows and others costs one request more for each shadow, one after the other; an
/// id is not that of its shadows, which a retry asks anew. Limiters have the name that observers
/// are told: that of the key, if it has one of its own. Thread-safe. REQUIRES: the observer
/// outlives the store.
class ShadowStore final : public StoreWrapper {
 public:
  /// `name`: of the store, in events. Throws std::invalid_argument if a limiter's name is empty.
  ShadowStore(const StoreHandle& inner, Observer& observer, std::vector<std::string> limiters,
              detail::TextArg name = "store");
  ~ShadowStore() override;

  /// Other limiters are shadows from now on: take a name away, and its limiter is obeyed. Throws
  /// as the constructor does, and changes nothing then.
  void set_shadows(std::vector<std::string> limiters);
  /// The names, in their order.
  [[nodiscard]] std::vector<std::string> shadows() const;

  void execute(const Plan& plan, Completion done) noexcept override;
  [[nodiscard]] Decision decide_one(const Step& step, std::error_code& error) noexcept override;
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  void execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept override;

 private:
  struct Trial;
  class Hop;
  struct Shadows;

  [[nodiscard]] bool is_shadow(std::span<const Step> steps, std::size_t index) const noexcept;
  [[nodiscard]] bool has_shadows(std::span<const Plan> plans) const noexcept;
  void tell(const Step& step, const Decision& decision, std::error_code error,
            bool is_of_wait) const noexcept;
  void begin(const Plan& plan, Completion& done);
  void ask(std::unique_ptr<Hop> hop, Completion& done);
  void go_on(std::unique_ptr<Trial> trial, Completion done) noexcept;

  Observer& observer_;
  const std::string name_;
  std::unique_ptr<Shadows> shadows_;
  detail::InFlight in_flight_;  // last: its calls use the others
};

}  // namespace sluice
