// Descriptions of the kinds that count in windows.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "cli/text.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/calendar.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "tool/describe_parts.hpp"
#include "tool/unit.hpp"

namespace sluice::tool {
namespace {

/// The units of a quota in a window: of "100/s" 6,000 in a minute.
Word units_in(const Quota& quota, Word span) {
  __extension__ typedef __int128 Wide;
  const Wide units = Wide{quota.refill()} * span;
  if (detail::is_constant(quota.capacity()) || units % quota.period() != 0 ||
      units / quota.period() > SlidingWindowRule::max_limit || units < quota.period()) {
    throw std::invalid_argument(to_string(quota) + " is no whole number of units in " +
                                duration(Span{span}));
  }
  return static_cast<Word>(units / quota.period());
}

/// The limit of one window.
std::optional<Word> limit_of(const Given& given, Word span) {
  if (given.quota) return units_in(*given.quota, span);
  return only_limit(given);
}

using Windows = std::vector<SlidingWindowRule::Window>;

Answer ask_windows(const Subject& subject, const Windows& windows, Word cost) {
  std::vector<Word> table;
  Word least = SlidingWindowRule::max_limit;
  Word longest = 1;
  for (const auto& [limit, span] : windows) {
    table.insert(table.end(), {limit, span});
    least = std::min(least, limit);
    longest = std::max(longest, span);
  }
  return ask(subject, sliding_window_peek, {least, cost, 0, longest}, table);
}

/// The calendar's boundaries around now; of a calendar that the tool does not know, one window
/// from what is stored to now, so that what is stored is seen.
std::array<Word, 1 + FixedWindowRule::boundaries> boundaries_of(
    const std::optional<Calendar>& calendar, Word begin, Word now) {
  if (calendar) return calendar->words(to_time(now));
  const Word end = std::max(begin, now) + 1;
  return {0, std::min(begin, now), end, end, end, end};
}

}  // namespace

std::vector<Word> window_limits(const Given& given, const std::vector<Word>& spans,
                                Word limit_in_state) {
  std::vector<Word> limits = given.limits;
  if (given.quota) limits = {units_in(*given.quota, spans.front())};
  if (limits.empty() && spans.size() == 1 && limit_in_state > 0) limits = {limit_in_state};
  if (!limits.empty() && limits.size() != spans.size()) {
    throw std::invalid_argument("the key has " + plural(spans.size(), "window") + " and " +
                                plural(limits.size(), "limit") + " is given");
  }
  return limits;
}

void describe_fixed_window(const Subject& subject) {
  const std::optional<Calendar> calendar = calendar_in(subject.name.unit);
  const auto boundaries = boundaries_of(calendar, subject.words[0], subject.now);
  const auto answer = [&](Word limit, Word cost) {
    Arguments args{limit};
    std::copy(boundaries.begin(), boundaries.end(), args.begin() + 1);
    args.back() = cost;
    return ask(subject, fixed_window_peek, args).verdict;
  };
  subject.add("calendar", subject.name.unit);
  constexpr Word most = FixedWindowRule::max_limit;
  Verdict verdict = answer(most, 0);
  if (!calendar) verdict.reset_after = 0;  // the end of its window is not known
  tell_use(subject, verdict, most);
  const std::optional<Word> limit = calendar && calendar->is_even()
                                        ? limit_of(subject.given, boundaries[0])
                                        : only_limit(subject.given);
  if (!limit) return;
  Verdict asked = answer(*limit, subject.given.cost);
  if (!calendar) asked.retry_after = 0;
  tell_limit(subject, *limit, asked);
}

void describe_sliding_window(const Subject& subject) {
  using Rule = SlidingWindowRule;
  std::array<Word, sizeof(Rule::State) / sizeof(Word)> words{};
  std::copy_n(subject.words.begin(), std::min(words.size(), subject.words.size()), words.begin());
  const auto state = detail::unpack<Rule::State>(words);
  std::vector<Word> spans = spans_in(subject.name.unit);
  // The log of a shared sliding window, whose key names none.
  if (spans.empty()) spans = {std::clamp(state.span, Word{1}, Rule::max_span)};

  Windows windows;
  for (const Word span : spans) windows.push_back({Rule::max_limit, span});
  const auto [verdict, output] = ask_windows(subject, windows, 0);
  if (verdict.status < 0) return;
  const std::vector<Word> limits = window_limits(subject.given, spans, state.limit);
  if (verdict.status == Verdict::refused) {
    subject.result.summary = "closed for " + duration(Span{verdict.retry_after});
    subject.add("closed_until", Moment{subject.now + verdict.retry_after});
  }
  subject.result.rows_name = "windows";
  Word fullest = 0;
  for (std::size_t k = 0; k < spans.size(); ++k) {
    const Word used = windows[k].limit - output[3 + k];
    Fields row{{"window", Span{spans[k]}}, {"used", used}};
    if (!limits.empty()) {
      windows[k].limit = limits[k];
      row.push_back({"limit", limits[k]});
    }
    subject.result.rows.push_back(std::move(row));
    const auto share = [&](std::size_t i, Word units) {
      return limits.empty() ? static_cast<double>(units)
                            : static_cast<double>(units) / static_cast<double>(limits[i]);
    };
    if (k == 0 || share(k, used) > share(static_cast<std::size_t>(fullest), *subject.result.used)) {
      fullest = static_cast<Word>(k);
      subject.result.used = used;
    }
  }
  subject.add("used", *subject.result.used);
  if (verdict.reset_after > 0) subject.add("unused_at", Moment{subject.now + verdict.reset_after});
  if (limits.empty()) return;
  tell_limit(subject, limits[static_cast<std::size_t>(fullest)],
             ask_windows(subject, windows, subject.given.cost).verdict);
}

void describe_sliding_window_counter(const Subject& subject) {
  const Word span = span_in(subject.name.unit);
  if (span == 0 || span > SlidingWindowCounterRule::max_span) {
    subject.result.summary = "its key names no window";
    return;
  }
  const auto answer = [&](Word limit, Word cost) {
    return ask(subject, sliding_window_counter_peek, {limit, span, cost}).verdict;
  };
  subject.add("window", Span{span});
  constexpr Word most = SlidingWindowCounterRule::max_limit;
  tell_use(subject, answer(most, 0), most);
  if (const std::optional<Word> limit = limit_of(subject.given, span)) {
    tell_limit(subject, *limit, answer(*limit, subject.given.cost));
  }
}

void describe_shared_sliding_window(const Subject& subject) {
  const auto [verdict, output] = ask(subject, shared_sliding_window_config,
                                     {word_limit, SharedSlidingWindowRule::max_keep_alive});
  if (verdict.status < 0) {
    subject.result.summary = "no rate";
    return;
  }
  const bool is_unlimited = output[2] == unlimited;
  subject.result.summary =
      (is_unlimited ? "unlimited" : thousands(static_cast<std::uint64_t>(output[2]))) + " in " +
      duration(Span{output[3]}) + (output[4] == 1 ? " for each client" : "");
  subject.add("version", output[0]);
  subject.add("log", output[1]);
  if (!is_unlimited) subject.add("rate", output[2]);
  subject.add("window", Span{output[3]});
  subject.add("counted", std::string(output[4] == 1 ? "for each client" : "together"));
}

}  // namespace sluice::tool
