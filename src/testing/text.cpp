// Values as text.
#include "sluice/testing/text.hpp"

#include <chrono>
#include <cstdint>

#include "src/core/error_names.hpp"
#include "src/core/text.hpp"

namespace sluice::testing {
namespace {

std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::string to_text(Span span) { return sluice::detail::text_of(span); }

std::string to_text(Time time) {
  using namespace std::chrono;
  if (time < Time{hours{24 * 365}}) {
    const Span since = time.time_since_epoch();
    return (since < Span{0} ? "" : "+") + to_text(since);
  }
  const sys_days day{floor<days>(time.time_since_epoch())};
  const year_month_day date{day};
  const Word us = to_word(time) % Word{86'400'000'000};
  const Word seconds = us / 1'000'000;
  std::string fraction = sluice::detail::decimal(us % 1'000'000, 1'000'000).substr(1);
  return std::to_string(int{date.year()}) + '-' + two_digits(unsigned{date.month()}) + '-' +
         two_digits(unsigned{date.day()}) + ' ' + two_digits(seconds / 3600) + ':' +
         two_digits(seconds / 60 % 60) + ':' + two_digits(seconds % 60) + fraction + " UTC";
}

std::string to_text(const std::error_code& error) {
  if (error.category() == error_category()) {
    const auto name = sluice::detail::find_name(static_cast<Errc>(error.value()));
    if (!name.empty()) return std::string(name);
  }
  return std::string(error.category().name()) + ':' + std::to_string(error.value());
}

std::string to_text(const Outcome& outcome) {
  if (!outcome.error) return to_string(outcome.decision);
  const auto step = outcome.decision.step;
  return "the error " + to_text(outcome.error) +
         (step == 0 ? "" : " of step " + std::to_string(step));
}

}  // namespace sluice::testing
