// The messages of exceptions of failed calls: which value was wrong, and what is allowed.
// Threading: functions of their arguments alone.
#include <optional>
#include <utility>

#include "sluice/decide.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "src/core/failed_settle.hpp"

namespace sluice {
namespace {

std::string text_of(Word word) {
  if (word == word_limit) return "2^52";
  return word == -word_limit ? "-2^52" : std::to_string(word);
}

struct Range {
  Word least;
  Word most;
  [[nodiscard]] std::string text() const { return text_of(least) + " to " + text_of(most); }
};

/// The range that is allowed with the other arguments, if there is one. It is found by the row's
/// own check, so that no range is repeated here.
std::optional<Range> allowed_range(const Operation& row, std::size_t index, Arguments args) {
  const auto fits = [&](Word word) {
    args[index] = word;
    return row.check(args) == Verdict::allowed;
  };
  const auto edge = [&](Word inside, Word outside) {
    if (fits(outside)) return outside;
    while (inside - outside > 1 || outside - inside > 1) {
      const Word middle = inside + (outside - inside) / 2;
      (fits(middle) ? inside : outside) = middle;
    }
    return inside;
  };
  Word inside = 0;
  if (!fits(inside)) {
    for (inside = 1; inside < word_limit && !fits(inside);) inside *= 2;
  }
  if (!fits(inside)) return std::nullopt;  // another argument is wrong
  return Range{edge(inside, -word_limit), edge(inside, word_limit)};
}

/// The argument as in the failed call.
Argument named_by(std::string_view verb, const Operation& row, Argument chosen,
                  const Arguments& args) {
  // By name: a reference to the row would link its rule into every program.
  const auto blocks = [&](std::string_view operation, std::size_t change, auto block) {
    return row.name == operation && args[change] == static_cast<Word>(block);
  };
  if (blocks("token_bucket.adjust", 6, TokenBucketReserve::Change::block) ||
      blocks("shared_token_bucket.adjust", 1, SharedTokenBucketReserve::Change::block)) {
    chosen.name = "span";
    chosen.unit = "us";
  }
  if (verb == "borrow" && chosen.role == Argument::Role::wait) chosen.name = "debt";
  return chosen;
}

std::string unit_of(const Argument& argument) {
  return *argument.unit == '\0' ? "" : std::string(" ") + argument.unit;
}

std::string wrong(const Argument& chosen, Word given, const Range& allowed) {
  if (chosen.range != nullptr) return std::string(chosen.name) + " not in " + chosen.range;
  const std::string unit = unit_of(chosen);
  return std::string(chosen.name) + ' ' + text_of(given) + unit + ", allowed " + allowed.text() +
         unit;
}

/// The first argument that is wrong by itself.
std::optional<std::string> wrong_argument(std::string_view verb, const Operation& row,
                                          const Arguments& args) {
  for (const Argument& chosen : row.arguments) {
    const auto range = allowed_range(row, chosen.index, args);
    const Word given = args[chosen.index];
    if (range) return wrong(named_by(verb, row, chosen, args), given, *range);
  }
  return std::nullopt;
}

/// The same if several are wrong: the one that alone fails in the same way, and its allowed range.
std::optional<std::string> wrong_among_others(std::string_view verb, const Operation& row,
                                              const Arguments& args, Errc error) {
  for (const Word passing : {Word{0}, Word{1}}) {
    for (const Argument& chosen : row.arguments) {
      Arguments alone = args;
      for (const Argument& other : row.arguments) alone[other.index] = passing;
      alone[chosen.index] = args[chosen.index];
      if (row.check(alone) != -static_cast<Word>(error)) continue;
      const auto range = allowed_range(row, chosen.index, alone);
      // A single value depends on the other arguments.
      if (!range || range->least == range->most) continue;
      return wrong(named_by(verb, row, chosen, args), args[chosen.index], *range);
    }
  }
  return std::nullopt;
}

/// The wrong argument, else the arguments of the caller that the error may be about.
std::string arguments_of(const Operation& row, const Arguments& args, std::string_view verb,
                         Errc error) {
  if (row.arguments.size() == 0) return {};
  if (row.check(args) != Verdict::allowed) {
    if (const auto one = wrong_argument(verb, row, args)) return *one;
    return wrong_among_others(verb, row, args, error).value_or("");
  }
  std::string all;
  for (const Argument& each : row.arguments) {
    const Argument chosen = named_by(verb, row, each, args);
    const Word given = args[chosen.index];
    const std::string unit = unit_of(chosen);
    if (chosen.range != nullptr ||
        (!unit.empty() && (given == 0 || error != Errc::invalid_argument))) {
      continue;
    }
    all += (all.empty() ? "" : ", ") + (std::string(chosen.name) + ' ' + text_of(given)) + unit;
  }
  return all;
}

std::string key_of(const Key& key) {
  if (is_valid(key)) return "key " + render(key);
  const auto part = [](std::string_view bytes) {
    return std::to_string(bytes.size()) + (bytes.size() == 1 ? " byte" : " bytes");
  };
  const bool nameless = key.name().empty() && !key.tag().empty();
  return "a tag of " + part(key.tag()) + ", a name of " + part(key.name()) +
         (nameless ? " (a limiter that was moved from has none)" : "");
}

/// The details of this thread's last failed call: between its end and the exception there are only
/// functions that pass the error on.
struct NotedReason {
  std::error_code error;
  std::shared_ptr<const std::string> text;
  StateKind found{};  // after Errc::wrong_kind
};
thread_local bool has_ended = false;  // this thread's other objects: static ones end after them
struct Noted {
  ~Noted() { has_ended = true; }
  NotedReason last;
};
thread_local Noted noted;

StateKind noted_kind(const std::error_code& error) {
  return !has_ended && noted.last.error == error ? noted.last.found : StateKind{};
}

std::string text_of(StateKind kind) {
  for (const StateDescription& each : state_descriptions) {
    if (each.kind == kind) return each.name;
  }
  return "a state of another version (kind " + std::to_string(static_cast<int>(kind)) + ")";
}

/// The kind under the key, if the store has reported it, and the kind of the operation. Either may
/// be unknown.
std::string kinds_of(const Key* key, const Operation* asked, StateKind found) {
  const std::string as = asked == nullptr ? "" : "asked as " + text_of(asked->kind);
  if (found == StateKind{}) {
    const std::string which = key == nullptr ? "" : key_of(*key);
    return which + (which.empty() || as.empty() ? "" : ", ") + as;
  }
  const std::string which = key == nullptr ? "the key" : '"' + render(*key) + '"';
  return which + " holds " + text_of(found) + (as.empty() ? "" : " and was " + as);
}

/// `key`: null if it no longer exists. `asked`: null if the operation is unknown.
std::string given_to(const std::error_code& error, std::string_view verb, const Key* key,
                     const Operation* asked, const Arguments& args) {
  if (error.category() != error_category()) return {};
  const auto code = static_cast<Errc>(error.value());
  switch (code) {
    case Errc::cost_exceeds_capacity:
    case Errc::invalid_cost:
    case Errc::invalid_argument:
      return asked == nullptr ? "" : arguments_of(*asked, args, verb, code);
    case Errc::invalid_key:
    case Errc::duplicate_key:
    case Errc::store_full:
    case Errc::wrong_type:
    case Errc::corrupt_state:
    case Errc::not_configured:
    case Errc::lease_not_live:
    case Errc::other_store:
      return key == nullptr ? "" : key_of(*key);
    case Errc::wrong_kind:
      return kinds_of(key, asked, noted_kind(error));
    default:
      return {};
  }
}

std::shared_ptr<const std::string> take_reason(const std::error_code& error) noexcept {
  if (has_ended) return nullptr;
  const NotedReason taken = std::exchange(noted.last, {});
  return taken.error == error ? taken.text : nullptr;
}

/// True for failures of one step.
bool is_of_step(const std::error_code& error) {
  return error == Errc::cost_exceeds_capacity || error == Errc::invalid_cost ||
         error == Errc::invalid_argument || error == Errc::duplicate_key ||
         error == Errc::invalid_key || error == Errc::other_store;
}

std::system_error failure(const detail::CallName& call, const std::error_code& error,
                          std::size_t steps, std::size_t step, const std::string& given) {
  if (error == Errc::invalid_plan) {
    return detail::failed_with(
        call, error,
        std::to_string(steps) + " steps, allowed 1 to " + std::to_string(Plan::max_steps));
  }
  const bool tells_step = steps > 1 && step < steps && (!given.empty() || is_of_step(error));
  std::string text = tells_step ? "step " + std::to_string(step) : "";
  if (tells_step && !given.empty()) text += ": ";
  return detail::failed_with(call, error, text + given);
}

}  // namespace

std::string detail::not_allowed(const char* name, Word value, Word least, Word most) {
  const std::string given = std::string(name) + ' ' + text_of(value);
  if (value >= least && value <= most) return given;
  return given + ", allowed " + Range{least, most}.text();
}

std::system_error detail::failed_with(const CallName& call, const std::error_code& error,
                                      const std::string& given) {
  std::string text = call.text();
  if (!given.empty()) text += ": " + given;
  if (const auto reason = take_reason(error)) text += ": " + *reason;
  return {error, text};
}

std::shared_ptr<const std::string> detail::reason_of(const Store& store,
                                                     const std::error_code& error) noexcept {
  const bool has_none = !error || error == Errc::shut_down || error == Errc::cancelled;
  return has_none ? nullptr : store.reason_of(error);
}

void detail::note_reason(const std::error_code& error, std::shared_ptr<const std::string> reason,
                         const Decision& answer) noexcept {
  if (has_ended) return;
  const bool is_kind = error == Errc::wrong_kind;
  noted.last = {error, std::move(reason),
                is_kind ? static_cast<StateKind>(answer.part) : StateKind{}};
}

std::system_error detail::failed_call(const CallName& call, const std::error_code& error,
                                      const Plan& plan, std::uint16_t step) {
  const auto steps = plan.steps();
  std::string given;
  if (step < steps.size()) {
    const Step& asked = steps[step];
    given = given_to(error, call.verb, &asked.key, asked.operation, asked.args);
  }
  return failure(call, error, steps.size(), step, given);
}

detail::AskedPlan::AskedPlan(const Plan& plan) noexcept : steps(plan.steps().size()) {
  if (steps != 1) return;
  operation = plan.steps().front().operation;
  args = plan.steps().front().args;
}

std::system_error detail::failed_call(const CallName& call, const std::error_code& error,
                                      const AskedPlan& plan, std::uint16_t step) {
  const std::string given = given_to(error, call.verb, nullptr, plan.operation, plan.args);
  return failure(call, error, plan.steps, step, given);
}

std::system_error detail::failed_settle(const CallName& call, const std::error_code& error,
                                        const Step& charge, const Reservation& grant, Cost actual) {
  if (is_of_another_key(grant, charge.key)) return failed_with(call, error, of_another_key);
  if (error == Errc::invalid_argument) return failed_with(call, error, "");
  if (error != Errc::invalid_cost && error != Errc::cost_exceeds_capacity) {
    return failed_call(call, error, charge);
  }
  const Operation& row = *charge.operation;
  const auto range = row.arguments.size() == 0
                         ? std::nullopt
                         : allowed_range(row, row.arguments.begin()->index, charge.args);
  if (!range) return failed_with(call, error, "actual " + text_of(actual.value()));
  const Word most = grant.granted + grant.settled + range->most;
  return failed_with(call, error, not_allowed("actual", actual.value(), 0, most));
}

std::string detail::CallName::text() const { return std::string(limiter) + "::" + verb; }

}  // namespace sluice
