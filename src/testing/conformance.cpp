// The claims of the conformance suite in their order, and a run of them.
#include "sluice/testing/conformance.hpp"

#include <cstdlib>
#include <exception>
#include <utility>

#include "sluice/rng.hpp"
#include "src/testing/claims.hpp"

namespace sluice::testing {
namespace detail {
namespace {

constexpr Check all_checks[] = {
    {"every operation of the table can be checked", every_row_has_a_generator, false, true},
    {"the instant of a decision is the store's time", instants_are_the_clocks},
    {"every decision of a long history is the kernel's", history_of_single_steps},
    {"every plan of a long history is decided as its steps together", history_of_plans},
    {"a key that was bound is the same key", history_of_bound_keys},
    {"output words are those of the kernel", output_words_are_the_kernels},
    {"a state of any size survives", states_grow},
    {"keys that look alike are different keys", similar_keys_are_apart, false, true},
    {"a peek changes nothing", peeks_change_nothing},
    {"a refusal changes nothing", refusals_change_nothing},
    {"a refused plan leaves every key as it was", refused_plans_write_nothing},
    {"a plan names the step that decides it", plans_name_their_step, false, true},
    {"the same key twice in one plan is an error", duplicate_keys_are_errors},
    {"an invalid key is an error", invalid_keys_are_errors},
    {"a plan without steps, or with too many, is an error", invalid_sizes_are_errors},
    {"a request that can never be admitted is an error, not a refusal",
     impossible_requests_are_errors},
    {"a key of another kind of rule is an error", other_kinds_are_errors},
    {"an id charges once, however often it is used", ids_charge_once},
    {"every form of a call gives its answer once", every_form_answers_once},
    {"a batch answers each plan in its place", batches_answer_in_place},
    {"of alternatives the first that can be is admitted, and no other",
     one_alternative_is_admitted},
    {"concurrent callers get no more than the quota, and no less", concurrent_callers_share, false,
     true},
    {"concurrent plans are all or nothing", concurrent_plans_are_atomic, false, true},
    {"concurrent callers with keys of their own do not affect each other",
     concurrent_callers_are_apart},
    {"the hint is exact to the microsecond", hints_are_exact, true},
    {"decisions follow the clock when it moves", history_of_moves, true},
    {"a clock that is set back adds no units and locks no key", clock_set_back, true},
    {"a state counts until it expires", states_are_kept, true},
    {"an id is kept for its time", ids_are_forgotten, true},
};

std::uint64_t choose_seed() {
  if (const char* text = std::getenv("SLUICE_SEED"); text != nullptr) {
    if (const auto seed = std::strtoull(text, nullptr, 0); seed != 0) return seed;
  }
  return SystemRng{}.next() | 1;
}

std::string make_prefix(const ConformanceOptions& options) {
  if (!options.key_prefix.empty()) return options.key_prefix;
  SystemRng random;
  return "conformance-" + std::to_string(random.next());
}

}  // namespace

std::span<const Check> checks() noexcept { return all_checks; }

std::string run_check(const Check& check, Store& store, const ConformanceOptions& options,
                      const std::string& prefix) {
  Context context(store, options, prefix, check.name);
  const Time start = options.clock != nullptr ? options.clock->now() : Time{};
  std::string failure;
  try {
    check.run(context);
    return {};
  } catch (const Mismatch& mismatch) {
    failure = mismatch.text;
  } catch (const std::exception& error) {
    failure = std::string("an exception: ") + error.what();
  }
  // It may have stopped at the end of time, where nothing else can be seen.
  if (options.clock != nullptr) options.clock->set(start);
  return failure;
}

}  // namespace detail

Report::operator bool() const noexcept {
  for (const CheckedClaim& claim : claims) {
    if (!claim.ok) return false;
  }
  return !claims.empty();
}

bool Report::rejects(sluice::detail::TextArg name) const noexcept {
  for (const CheckedClaim& claim : claims) {
    if (claim.name == name.view()) return !claim.ok;
  }
  return false;
}

std::string Report::text() const {
  std::string out;
  for (const CheckedClaim& claim : claims) {
    out += claim.ok ? "ok    " : "FAIL  ";
    out += claim.name;
    if (!claim.ok) out += "\n      " + claim.failure;
    out += '\n';
  }
  return out;
}

Report check_conformance(Store& store, ConformanceOptions options,
                         const std::function<void(const CheckedClaim&)>& on_failure) {
  if (options.seed == 0) options.seed = detail::choose_seed();
  const std::string prefix = detail::make_prefix(options);
  Report report{options.seed, {}};
  for (const detail::Check& check : detail::checks()) {
    if (check.moves_time && options.clock == nullptr) continue;
    if (options.prefetch && !check.of_prefetch) continue;
    CheckedClaim claim{check.name, false, detail::run_check(check, store, options, prefix)};
    claim.ok = claim.failure.empty();
    if (!claim.ok) {
      claim.failure += "\n      repeat with SLUICE_SEED=" + std::to_string(options.seed) +
                       " or ConformanceOptions::seed";
      if (on_failure) on_failure(claim);
    }
    report.claims.push_back(std::move(claim));
  }
  return report;
}

}  // namespace sluice::testing
