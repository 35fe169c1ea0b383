#include "sim/scenario/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

namespace sluice::sim::scenario {
namespace {

using sluice::detail::span_of;

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return {};
  return value;
}

std::string plain(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

/// The parts between commas that are not inside parentheses.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth != 0)) continue;
    parts.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

struct DelayForm {
  std::string_view name;
  std::string_view parameters;
  std::size_t count;  // 0: any number
  Delay (*make)(std::span<const std::string_view>);
};

constexpr double most_shape = 1000;
constexpr double most_weight = 1 << 20;

// NOLINTBEGIN(readability-magic-numbers)
const DelayForm delay_forms[] = {
    {"constant", "time", 1, [](auto p) { return Delay::constant(parse_span(p[0])); }},
    {"uniform", "low, high", 2,
     [](auto p) { return Delay::uniform(parse_span(p[0]), parse_span(p[1])); }},
    {"exponential", "mean", 1, [](auto p) { return Delay::exponential(parse_span(p[0])); }},
    {"log_normal", "p50, p99", 2,
     [](auto p) { return Delay::log_normal(parse_span(p[0]), parse_span(p[1])); }},
    {"normal", "mean, deviation", 2,
     [](auto p) { return Delay::normal(parse_span(p[0]), parse_span(p[1])); }},
    {"gamma", "mean, shape", 2,
     [](auto p) { return Delay::gamma(parse_span(p[0]), parse_number(p[1], 0, most_shape)); }},
    {"pareto", "least, alpha", 2,
     [](auto p) { return Delay::pareto(parse_span(p[0]), parse_number(p[1], 0, most_shape)); }},
    {"weibull", "scale, shape", 2,
     [](auto p) { return Delay::weibull(parse_span(p[0]), parse_number(p[1], 0, most_shape)); }},
    {"phases", "fast, mean time, slow, mean time", 4,
     [](auto p) {
       return Delay::phases(parse_delay(p[0]), parse_span(p[1]), parse_delay(p[2]),
                            parse_span(p[3]));
     }},
    {"runs", "fast, mean calls, slow, mean calls", 4,
     [](auto p) {
       return Delay::runs(parse_delay(p[0]), parse_number(p[1], 1, most_weight), parse_delay(p[2]),
                          parse_number(p[3], 1, most_weight));
     }},
    {"empirical", "share time, ...", 0,
     [](auto p) {
       std::vector<Delay::Point> points;
       for (const std::string_view part : p) {
         const auto space = part.find(' ');
         if (space == std::string_view::npos) expected("a share and a time, as 0.5 10ms", part);
         points.push_back(
             {parse_number(part.substr(0, space), 0, 1), parse_span(trim(part.substr(space)))});
       }
       return Delay::empirical(points);
     }},
    {"mixture", "weight delay, ...", 0,
     [](auto p) {
       std::vector<Delay::Part> parts;
       for (const std::string_view part : p) {
         const auto space = part.find(' ');
         if (space == std::string_view::npos) expected("a weight and a delay, as 9 10ms", part);
         parts.push_back({parse_number(part.substr(0, space), 0, most_weight),
                          parse_delay(trim(part.substr(space)))});
       }
       return Delay::mixture(parts);
     }},
};
// NOLINTEND(readability-magic-numbers)

/// The count and the period of "25/5s".
std::pair<std::string_view, Span> split_rate(std::string_view text, std::string_view what) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) expected(what, text);
  const std::string_view period = trim(text.substr(slash + 1));
  const bool has_digit = !period.empty() && period.front() >= '0' && period.front() <= '9';
  const auto per = span_of(has_digit ? std::string(period) : "1" + std::string(period));
  if (!per || *per <= Span{0}) expected(what, text);
  return {trim(text.substr(0, slash)), *per};
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

void expected(std::string_view what, std::string_view text,
              std::span<const std::string_view> names) {
  throw std::invalid_argument("expected " + std::string(what) + ", got " +
                              (text.empty() ? "nothing" : "\"" + std::string(text) + "\"") +
                              did_you_mean(text, names));
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> names,
                         std::string_view quote) {
  const std::string near(nearest(name, names));
  if (near.empty()) return {};
  return "; did you mean " + std::string(quote) + near + std::string(quote) + "?";
}

double parse_number(std::string_view text, double least, double most) {
  const bool percent = text.ends_with('%');
  const auto value = number<double>(trim(percent ? text.substr(0, text.size() - 1) : text));
  const double scaled = value ? (percent ? *value / 100 : *value) : 0;
  if (!value || !std::isfinite(scaled) || scaled < least || scaled > most) {
    expected("a number from " + plain(least) + " to " + plain(most), text);
  }
  return scaled;
}

Word parse_count(std::string_view text, Word least, Word most) {
  const auto value = number<Word>(text);
  if (!value || *value < least || *value > most) {
    expected("a whole number from " + std::to_string(least) + " to " + std::to_string(most), text);
  }
  return *value;
}

bool parse_flag(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  expected("true or false", text);
}

Span parse_warm_up(std::string_view text) {
  if (text == "auto") return auto_warm_up;
  const auto span = span_of(text);
  if (!span) expected("a time, as 20s or 2min, or auto", text);
  return *span;
}

Span parse_step(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto span = span_of(negative ? text.substr(1) : text);
  if (!span) expected("a step, as 500ms or -2s", text);
  return negative ? -*span : *span;
}

Rate parse_rate(std::string_view text) {
  static constexpr std::string_view what = "a rate, as 100/s, 0.5/min or 25/5s";
  const auto [count, per] = split_rate(text, what);
  const auto point = count.find('.');
  std::string digits(count.substr(0, point));
  Word scale = 1;
  if (point != std::string_view::npos) {
    for (const char digit : count.substr(point + 1)) {
      digits += digit;
      scale *= 10;
      if (scale > 1'000'000) expected(what, text);
    }
  }
  const auto events = number<Word>(digits);
  if (!events || *events < 0 || *events > Word{1} << 40 || per > Span{word_limit / scale}) {
    expected(what, text);
  }
  return {*events, per * scale};
}

Delay parse_delay(std::string_view text) {
  const auto open = text.find('(');
  if (open == std::string_view::npos) return Delay::constant(parse_span(text));
  std::vector<std::pair<std::string_view, const DelayForm*>> named;
  for (const DelayForm& form : delay_forms) named.emplace_back(form.name, &form);
  const DelayForm& form = *parse_word(trim(text.substr(0, open)), named);
  const auto parts = split(text.substr(open + 1, text.size() - open - 2));
  if (!text.ends_with(')') || (form.count != 0 && parts.size() != form.count)) {
    expected(std::string(form.name) + "(" + std::string(form.parameters) + ")", text);
  }
  return form.make(parts);
}

ApiLimit parse_window_limit(std::string_view text) {
  static constexpr std::string_view aligned = " aligned";
  static constexpr std::string_view what = "a limit, as 10000/min or 10000/min aligned";
  const bool is_aligned = text.ends_with(aligned);
  if (is_aligned) text.remove_suffix(aligned.size());
  const auto [count, per] = split_rate(text, what);
  ApiLimit limit;
  limit.limit = parse_count(count, 1, 100'000'000);
  limit.window = per;
  limit.aligned = is_aligned;
  return limit;
}

RetryAfter parse_retry_after(std::string_view text) {
  if (text == "exact") return RetryAfter::exact();
  if (text == "missing") return RetryAfter::missing();
  if (text == "seconds") return RetryAfter::exact().in_seconds();
  static constexpr std::string_view times = " times";
  if (text.ends_with(times)) {
    const double factor = parse_number(text.substr(0, text.size() - times.size()), 0, 1000);
    return factor < 1 ? RetryAfter::too_short(factor) : RetryAfter::too_long(factor);
  }
  expected("exact, missing, seconds, or a factor such as 0.5 times", text);
}

ArrivalOptions::Burst parse_burst(std::string_view text) {
  static constexpr std::string_view at = " at ";
  const auto place = text.find(at);
  if (place == std::string_view::npos)
    expected("a number of jobs and a time, as 1000 at 59s", text);
  return {parse_count(trim(text.substr(0, place)), 1, 10'000'000),
          parse_span(trim(text.substr(place + at.size())))};
}

}  // namespace sluice::sim::scenario
