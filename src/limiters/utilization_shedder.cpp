// Construction of the utilization shedder: options become arguments.
#include "sluice/limiters/utilization_shedder.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/limiters/or_throw.hpp"
#include "src/util/quoted.hpp"

namespace sluice {
namespace {

using Rule = UtilizationRule;

constexpr Span longest{Rule::max_span};
constexpr Span longest_rest = std::chrono::hours{24 * 30};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

std::string text_of(Span span) { return std::to_string(span.count()) + " us"; }

Word threshold(const char* what, double share) {
  const Word ppm = Utilization(share).ppm();
  require(ppm > 0 && ppm < Rule::one, std::string("the threshold `") + what +
                                          "` must lie between 0 and 1, got " +
                                          std::to_string(share));
  return ppm;
}

Rule::Pace pace(const UtilizationOptions& options) {
  const auto [grace, full_after] = std::pair{options.grace, options.full_after};
  require(grace >= Span{0} && grace <= longest, "grace must be 0 to 1 h, got " + text_of(grace));
  require(full_after >= Span{1} && full_after <= longest,
          "full_after must be 1 us to 1 h, got " + text_of(full_after));
  require(grace + full_after <= longest,
          "grace and full_after together must be at most 1 h, got " + text_of(grace + full_after));
  require(options.rest_after >= grace + full_after && options.rest_after <= longest_rest,
          "rest_after must be at least grace + full_after (" + text_of(grace + full_after) +
              ") and at most 30 days, got " + text_of(options.rest_after));
  require(options.max_gap >= Span{1} && options.max_gap <= longest,
          "max_gap must be 1 us to 1 h, got " + text_of(options.max_gap));
  const Word full = (grace + full_after).count() * Rule::one;
  const Word rest = options.rest_after.count();
  return {Rule::one, grace.count(), full_after.count(), (full + rest - 1) / rest,
          options.max_gap.count()};
}

void check_tiers(const std::vector<std::string>& tiers) {
  require(tiers.size() >= 2 && tiers.size() <= Rule::max_tiers + 1,
          "there must be 2 to 65536 tiers, the first of which is never shed, got " +
              std::to_string(tiers.size()));
  std::vector<std::string_view> names(tiers.begin(), tiers.end());
  std::sort(names.begin(), names.end());
  require(!names.front().empty(), "a tier's name must not be empty");
  const auto twin = std::adjacent_find(names.begin(), names.end());
  require(twin == names.end(),
          "two tiers have the same name, " + detail::quoted(twin == names.end() ? "" : *twin));
}

}  // namespace

UtilizationShedder::UtilizationShedder(const StoreHandle& store, detail::TextArg name,
                                       UtilizationOptions options)
    : store_(store), name_(detail::valid_name(name)), options_(std::move(options)) {
  check_tiers(options_.most_critical_first);
  const Word good = threshold("good", options_.good);
  const Word bad = threshold("bad", options_.bad);
  require(good <= bad, "the threshold `good` must not exceed `bad`, got " +
                           std::to_string(options_.good) + " and " + std::to_string(options_.bad));
  const Rule::Pace paced = pace(options_);
  detail::pack(sample_, Rule::SampleArgs{paced, good, bad, 0});
  detail::pack(shed_, Rule::ShedArgs{
                          paced, static_cast<Word>(options_.most_critical_first.size()) - 1, 0, 0});
}

UtilizationShedder::Tier UtilizationShedder::find(std::string_view name) const noexcept {
  const auto place =
      std::find(options_.most_critical_first.begin(), options_.most_critical_first.end(), name);
  return Tier(place == options_.most_critical_first.end()
                  ? -1
                  : place - options_.most_critical_first.begin());
}

std::string UtilizationShedder::no_tier(std::string_view name) const {
  std::string text = "no tier " + detail::quoted(name) + "; the tiers are";
  for (const std::string& tier : options_.most_critical_first) text += ' ' + detail::quoted(tier);
  return text;
}

UtilizationShedder::Tier UtilizationShedder::tier(detail::TextArg name) const {
  const Tier found = find(name);
  require(found.index_ >= 0, no_tier(name));
  return found;
}

UtilizationShedder::Tier UtilizationShedder::named_tier(const char* verb,
                                                        std::string_view name) const {
  const Tier found = find(name);
  if (found.index_ < 0) {
    throw std::system_error(Errc::invalid_argument,
                            std::string(type_name) + "::" + verb + ": " + no_tier(name));
  }
  return found;
}

Step UtilizationShedder::acquire_step(const Key& key, Tier tier, Word draw) const noexcept {
  Step step{&utilization_shed, named(key), shed_};
  step.args[6] = tier.index_;
  step.args[7] = draw;
  return step;
}

Step UtilizationShedder::peek_step(const Key& key, Tier tier) const noexcept {
  Step step{&utilization_peek, named(key), shed_};
  step.args[6] = tier.index_;
  return step;
}

Step UtilizationShedder::sample_step(const Key& key, Utilization utilization) const noexcept {
  Step step{&utilization_sample, named(key), sample_};
  step.args[7] = utilization.ppm();
  return step;
}

Step UtilizationShedder::reset_step(const Key& key) const noexcept {
  return {&utilization_reset, named(key), {Rule::one}};
}

UtilizationReport UtilizationShedder::report(const KeyArg& key) const {
  return detail::or_throw(
      {type_name, "report"}, [&] { return peek_step(key, Tier(0)); },
      [&](auto& error) { return report(key, error); });
}

UtilizationReport UtilizationShedder::report(const KeyArg& key, std::error_code& error) const {
  return detail::run(Verbs::report(*this, key), error);
}

UtilizationReport UtilizationShedder::report_of(const Outcome& outcome) const {
  const auto pace = detail::unpack<Rule::Pace>(shed_);
  const auto whole = static_cast<double>(pace.full_after);
  const Word level = detail::word_of(outcome, 2);
  const Word sampled = detail::word_of(outcome, 3);
  UtilizationReport result;
  result.amount = static_cast<double>(level - pace.grace) / whole;
  for (Word tier = 0; tier <= shed_[5]; ++tier) {
    const Word span = Rule::shed_span(pace, shed_[5], tier, level);
    result.probabilities.push_back(static_cast<double>(span) / whole);
  }
  if (sampled != 0) result.last_sample = to_time(sampled);
  result.rests_after = outcome.decision.reset_after;
  return result;
}

}  // namespace sluice
