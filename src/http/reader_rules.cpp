// Lists of limits in forms of one vendor each: Sentry's categories and Path of Exile's rules.
#include <algorithm>

#include "src/http/ascii.hpp"
#include "src/http/counts.hpp"
#include "src/http/reader.hpp"

namespace sluice::http::detail {
namespace {

constexpr std::string_view state_suffix = "-state";

/// A rule, `hits:period:timeout`, or its state: in both, the period says which it is.
struct Rule {
  Fate fate = Fate::malformed;
  Word hits = 0;
  Span period{0};
  Span timeout{0};
};

Rule parse_rule(std::string_view item, const Frame& frame) noexcept {
  const WholeCount hits = parse_whole_count(take_item(item, ':'));
  const WholeCount period = parse_whole_count(take_item(item, ':'));
  const WholeCount timeout = parse_whole_count(item);
  for (const WholeCount& each : {hits, period, timeout}) {
    if (!each.known()) return {.fate = each.fate};
  }
  return {Fate::used, hits.value, seconds_to_wait(period.value, frame).span,
          seconds_to_wait(timeout.value, frame).span};
}

}  // namespace

/// `60:transaction:key, 2700:default;error:organization`. It is sound, or nothing of it is used.
Fate FeedbackReader::read_sentry(const FieldName& name, std::string_view value) noexcept {
  for (const bool applies : {false, true}) {
    for (std::string_view rest = value; !rest.empty();) {
      const Fate fate = read_categories(name, take_item(rest, ','), applies);
      if (fate != Fate::used) return applies ? Fate::partly : fate;
    }
  }
  return Fate::used;
}

/// One item: seconds, categories and a scope; without categories it is about all of them.
Fate FeedbackReader::read_categories(const FieldName& name, std::string_view item,
                                     bool applies) noexcept {
  const Wait wait = parse_wait(take_item(item, ':'), TimeUnit::seconds, frame_);
  if (!wait.known()) return wait.fate == Fate::empty ? Fate::malformed : wait.fate;
  std::string_view categories = take_item(item, ':');
  const std::string_view scope = take_item(item, ':');
  if (!is_printable(categories) || !is_printable(scope)) return Fate::malformed;
  if (scope.size() > Text::capacity) return Fate::too_long;
  do {
    const std::string_view category = take_item(categories, ';');
    if (category.size() > Text::capacity) return Fate::too_long;
    if (!applies) continue;
    const std::size_t place = window(name.source, category);
    if (place == Feedback::max_windows) return Fate::too_many;
    out_.windows()[place].remaining = 0;
    if (set_reset(place, wait) == Fate::superseded) continue;
    (void)out_.windows()[place].resource.assign(scope);
  } while (!categories.empty());
  return Fate::used;
}

/// True if the response names this rule: `X-Rate-Limit-Rules: Account,Ip`.
bool FeedbackReader::is_rule(const FieldName& name) const noexcept {
  if (name.source != "x-rate-limit") return false;
  std::string_view rule = name.group;
  if (rule.ends_with(state_suffix)) rule.remove_suffix(state_suffix.size());
  const auto names_it = [&](const Sieve::Picked& picked) {
    if (!equal_ignoring_case(picked.header.name, "x-rate-limit-rules")) return false;
    for (std::string_view rules = picked.header.value; !rules.empty();) {
      if (equal_ignoring_case(take_item(rules, ','), rule)) return !rule.empty();
    }
    return false;
  };
  return std::any_of(headers_.picked().begin(), headers_.picked().end(), names_it);
}

std::size_t FeedbackReader::rule_window(const FieldName& name, std::string_view rule,
                                        Span length) noexcept {
  const auto all = out_.windows();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Window& w) {
    return w.source == name.source && w.name == rule && w.length == length;
  });
  const auto place = static_cast<std::size_t>(found - all.begin());
  if (place < all.size()) return place;
  Window fresh{.length = length};
  (void)fresh.source.assign(name.source);
  if (!fresh.name.assign(rule) || !out_.add(fresh)) return Feedback::max_windows;
  drafts_[place].is_rule = true;
  return place;
}

/// `45:60:120,180:1800:600`
Fate FeedbackReader::read_rule(const FieldName& name, std::string_view value) noexcept {
  std::string_view group = name.group;
  const bool is_state = group.ends_with(state_suffix);
  if (is_state) group.remove_suffix(state_suffix.size());
  for (const bool applies : {false, true}) {
    for (std::string_view rest = value; !rest.empty();) {
      const Rule rule = parse_rule(take_item(rest, ','), frame_);
      if (rule.fate != Fate::used) return rule.fate;
      if (!applies) continue;
      const std::size_t place = rule_window(name, group, rule.period);
      if (place == Feedback::max_windows) return Fate::partly;
      Window& target = out_.windows()[place];
      (void)(is_state ? set_most(target.used, rule.hits, Fate::used)
                      : set_least(target.limit, rule.hits, Fate::used));
      if (!is_state || rule.timeout == Span{0}) continue;
      target.remaining = 0;
      (void)set_reset(place, {Fate::used, rule.timeout, true});
    }
  }
  return Fate::used;
}

}  // namespace sluice::http::detail
