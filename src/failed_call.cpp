// What an exception says of a call that failed: which value was wrong, and what is allowed.
// Threading: functions of their arguments alone.
#include <array>
#include <optional>

#include "sluice/algorithms/fixed_window.hpp"
#include "sluice/algorithms/gate.hpp"
#include "sluice/algorithms/leases.hpp"
#include "sluice/algorithms/shared_bucket_spend.hpp"
#include "sluice/algorithms/shared_rate.hpp"
#include "sluice/algorithms/sliding_counter.hpp"
#include "sluice/algorithms/sliding_windows.hpp"
#include "sluice/algorithms/slot_lock.hpp"
#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/algorithms/token_bucket_spend.hpp"
#include "sluice/algorithms/utilization.hpp"
#include "sluice/decide.hpp"

namespace sluice {
namespace {

/// An argument that the caller of a limiter chose; the limiter checked the others when it was made.
struct Chosen {
  const Operation* row;
  std::size_t index;
  const char* name;
  const char* unit = "";
};

constexpr std::array chosen_arguments{
    Chosen{&token_bucket_take, 5, "cost"},
    Chosen{&token_bucket_peek, 5, "cost"},
    Chosen{&token_bucket_spend, 7, "cost"},
    Chosen{&token_bucket_spend, 6, "wait", " us"},
    Chosen{&token_bucket_look, 7, "cost"},
    Chosen{&token_bucket_spend_some, 6, "least"},
    Chosen{&token_bucket_spend_some, 7, "most"},
    Chosen{&token_bucket_give_back, 5, "amount"},
    Chosen{&token_bucket_give_back, 4, "granted"},
    Chosen{&token_bucket_set, 7, "amount"},
    Chosen{&sliding_windows_take, 1, "cost"},
    Chosen{&sliding_windows_take, 2, "wait", " us"},
    Chosen{&sliding_windows_peek, 1, "cost"},
    Chosen{&sliding_windows_give_back, 1, "amount"},
    Chosen{&sliding_windows_reward, 1, "amount"},
    Chosen{&sliding_windows_block, 1, "span", " us"},
    Chosen{&sliding_counter_take, 2, "cost"},
    Chosen{&sliding_counter_peek, 2, "cost"},
    Chosen{&sliding_counter_adjust, 2, "amount"},
    Chosen{&sliding_counter_block, 2, "span", " us"},
    Chosen{&fixed_window_take, 7, "cost"},
    Chosen{&fixed_window_peek, 7, "cost"},
    Chosen{&fixed_window_give_back, 3, "amount"},
    Chosen{&fixed_window_adjust, 7, "amount"},
    Chosen{&fixed_window_block, 7, "span", " us"},
    Chosen{&shared_rate_set, 0, "rate"},
    Chosen{&shared_rate_set, 1, "interval", " us"},
    Chosen{&shared_bucket_take, 1, "cost"},
    Chosen{&shared_bucket_peek, 1, "cost"},
    Chosen{&shared_bucket_spend, 1, "cost"},
    Chosen{&shared_bucket_spend, 3, "wait", " us"},
    Chosen{&shared_bucket_give_back, 3, "amount"},
    Chosen{&shared_bucket_give_back, 1, "granted"},
    Chosen{&shared_bucket_adjust, 3, "amount"},
    Chosen{&shared_bucket_set, 3, "keep_alive", " us"},
    Chosen{&leases_acquire, 1, "weight"},
    Chosen{&leases_peek, 1, "weight"},
    Chosen{&leases_block, 1, "span", " us"},
    Chosen{&slot_lock_take, 2, "wait", " us"},
    Chosen{&slot_lock_peek, 2, "wait", " us"},
    Chosen{&slot_lock_block, 2, "span", " us"},
    Chosen{&gate_close, 4, "span", " us"},
    Chosen{&utilization_sample, 7, "utilization", " millionths"},
    Chosen{&utilization_shed, 6, "tier"},
};

std::string text_of(Word word) {
  if (word == word_limit) return "2^52";
  return word == -word_limit ? "-2^52" : std::to_string(word);
}

/// "0 to 10", if another value than the one given would be allowed beside the other arguments. The
/// row's own check is asked, so that no range stands here.
std::optional<std::string> allowed_range(const Chosen& chosen, Arguments args) {
  const auto fits = [&](Word word) {
    args[chosen.index] = word;
    return chosen.row->check(args) == Verdict::allowed;
  };
  const auto edge = [&](Word inside, Word outside) {
    if (fits(outside)) return outside;
    while (inside - outside > 1 || outside - inside > 1) {
      const Word middle = inside + (outside - inside) / 2;
      (fits(middle) ? inside : outside) = middle;
    }
    return inside;
  };
  if (fits(args[chosen.index])) return std::nullopt;  // then it was the state that it did not fit
  Word inside = 0;
  if (!fits(inside)) {
    for (inside = 1; inside < word_limit && !fits(inside);) inside *= 2;
  }
  if (!fits(inside)) return std::nullopt;  // then another argument is wrong
  return text_of(edge(inside, -word_limit)) + " to " + text_of(edge(inside, word_limit));
}

/// The first of the arguments that is wrong by itself, else all that the caller chose.
std::string arguments_of(const Step& step, std::string_view verb) {
  std::string all;
  for (Chosen chosen : chosen_arguments) {
    if (chosen.row != step.operation) continue;
    if (verb == "block") {  // some rows have it beside changes of other units
      chosen.name = "span";
      chosen.unit = " us";
    }
    const std::string given =
        std::string(chosen.name) + ' ' + text_of(step.args[chosen.index]) + chosen.unit;
    if (const auto range = allowed_range(chosen, step.args)) {
      return given + ", allowed " + *range + chosen.unit;
    }
    all += (all.empty() ? "" : ", ") + given;
  }
  return all;
}

std::string key_of(const Step& step) {
  if (step.key == Key{"", ""}) return {};  // not known any more
  if (is_valid(step.key)) return "key " + render(step.key);
  const auto part = [](std::string_view bytes) { return std::to_string(bytes.size()) + " bytes"; };
  return "a tag of " + part(step.key.tag) + ", a name of " + part(step.key.name);
}

std::string given_to(const std::error_code& error, const Step& step, std::string_view verb) {
  if (error.category() != error_category()) return {};
  switch (static_cast<Errc>(error.value())) {
    case Errc::cost_exceeds_capacity:
    case Errc::invalid_cost:
    case Errc::invalid_argument:
      return arguments_of(step, verb);
    case Errc::invalid_key:
    case Errc::duplicate_key:
    case Errc::store_full:
    case Errc::wrong_type:
    case Errc::wrong_kind:
    case Errc::corrupt_state:
    case Errc::not_configured:
    case Errc::lease_not_live:
      return key_of(step);
    default:
      return {};
  }
}

}  // namespace

std::system_error detail::failed_call(const CallName& call, const std::error_code& error,
                                      const Plan& plan, std::uint16_t step) {
  const auto steps = plan.steps();
  std::string text = call.text();
  if (error == Errc::invalid_plan) {
    text += ": " + std::to_string(steps.size()) + " steps, allowed 1 to " +
            std::to_string(Plan::max_steps);
  } else if (step < steps.size()) {
    const std::string given = given_to(error, steps[step], call.verb);
    if (!given.empty() && steps.size() > 1) text += ": step " + std::to_string(step);
    if (!given.empty()) text += ": " + given;
  }
  return {error, text};
}

}  // namespace sluice
