// Reads headers one by one: vendors' spellings, where a header is one number of one limit.
#include "src/http/reader.hpp"

#include <algorithm>

#include "src/http/ascii.hpp"
#include "src/http/counts.hpp"

namespace sluice::http::detail {
namespace {

/// The parameters of a count in the earliest drafts: `100, 100;w=60` and, alone, `76;w=21600`.
struct Count {
  Fate fate = Fate::used;
  Word least = 0;
  Word most = 0;
  std::optional<Word> length{};  ///< seconds
};

/// A list of counts, which proxies join from several headers, with parameters.
Count count_of_list(std::string_view value) noexcept {
  if (!MemberReader::sound(value, MemberReader::Shape::list)) return {.fate = Fate::malformed};
  MemberReader list(value, MemberReader::Shape::list);
  Count count{.least = word_limit};
  Member member;
  for (bool first = true; list.next(member); first = false) {
    const bool integer = member.item.type == BareItem::Type::integer;
    if (!integer) return {.fate = Fate::malformed};
    if (member.item.number < 0) return {.fate = Fate::negative};
    const auto length = member.parameter("w");
    if (first && length && length->type == BareItem::Type::integer) count.length = length->number;
    if (first || !length) {
      count.least = std::min(count.least, member.item.number);
      count.most = std::max(count.most, member.item.number);
    }
  }
  return count;
}

Count parse_count(std::string_view value, bool is_limit) noexcept {
  std::string_view rest = value;
  const auto number = take_decimal(rest);
  if (!number || !rest.empty()) return count_of_list(value);
  // A limit below 1 is a rate in a unit that is not told.
  if (is_limit && number->whole == 0 && (number->micro != 0 || number->rounded)) {
    return {.fate = Fate::no_unit};
  }
  const WholeCount count = whole_count(*number);
  return {count.fate, count.value, count.value, {}};
}

}  // namespace

FeedbackReader::FeedbackReader(const Frame& frame, bool cached, const Sieve& headers) noexcept
    : frame_(frame), cached_(cached), headers_(headers) {
  out_.at = frame.now;
}

void FeedbackReader::read(const FieldName& name, std::string_view value,
                          std::uint16_t place) noexcept {
  value = trimmed(value);
  const Fate fate = value.size() > Feedback::max_value_bytes ? Fate::too_long
                    : value.empty()                          ? Fate::empty
                                                             : read_value(name, value);
  (void)out_.add(Note{place, fate});
}

Fate FeedbackReader::read_value(const FieldName& name, std::string_view value) noexcept {
  using enum Meaning;
  switch (name.meaning) {
    case retry_after:
      return read_retry_after(seconds_, unit_of(name.source), value);
    case retry_after_ms:
      return read_retry_after(milliseconds_, TimeUnit::milliseconds, value);
    case scope:
    case global:
    case reason:
      return read_text(name, value);
    case none:
    case date:
    case age:
      return Fate::used;
    default:
      break;
  }
  if (cached_) return Fate::cached;
  switch (name.meaning) {
    case rate_limit:
    case policy:
      return read_list(name.meaning, value);
    case limit:
    case remaining:
    case used:
    case usage:
      return is_pair(name) ? read_pair(name, value) : read_count(name, value);
    case used_in_interval:
      return read_used_in_interval(name, value);
    case rate:
      return read_rate(name, value);
    case reset:
    case reset_ms:
    case length:
    case length_ms:
      return read_wait(name, value);
    case used_of_limit:
      return read_used_of_limit(name, value);
    case resource:
    case rule_policy:
      return read_text(name, value);
    case sentry:
      return read_sentry(name, value);
    case rules:
      return Fate::used;
    case unknown:
      return is_rule(name) ? read_rule(name, value) : Fate::unknown;
    default:
      return Fate::unknown;
  }
}

Fate FeedbackReader::read_retry_after(Asked& asked, TimeUnit unit,
                                      std::string_view value) noexcept {
  const Wait wait = parse_wait(value, unit, frame_);
  if (!wait.known()) return wait.fate;
  if (asked.known && wait.span <= asked.span) return Fate::superseded;
  if (asked.known) out_.notes()[asked.note].fate = Fate::superseded;
  asked = {true, wait.span, out_.notes().size()};
  return wait.fate;
}

std::size_t FeedbackReader::window(std::string_view source, std::string_view name,
                                   std::string_view partition) noexcept {
  const auto all = out_.windows();
  const auto place_of = [&](auto fits) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Window& w) {
      return w.source == source && w.name == name && fits(w.partition);
    });
    return static_cast<std::size_t>(found - all.begin());
  };
  std::size_t place = place_of([&](const Text& other) { return other == partition; });
  if (place == all.size()) {
    place = place_of([&](const Text& other) { return other.empty() || partition.empty(); });
  }
  if (place == all.size()) {
    Window fresh;
    if (!fresh.source.assign(source) || !fresh.name.assign(name) || !out_.add(fresh)) {
      return Feedback::max_windows;
    }
  }
  if (!partition.empty()) (void)out_.windows()[place].partition.assign(partition);
  return place;
}

Fate FeedbackReader::read_count(const FieldName& name, std::string_view value) noexcept {
  const bool is_limit = name.meaning == Meaning::limit;
  std::string_view behind = value;
  if (is_limit && take_decimal(behind) && behind.starts_with('/')) {
    return read_limit_in(name, value);
  }
  const Count count = parse_count(value, is_limit);
  if (count.fate != Fate::used && count.fate != Fate::clamped) return count.fate;
  const std::size_t place = window(name.source, name.group);
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  if (name.meaning == Meaning::remaining) {
    return set_least(target.remaining, count.least, count.fate);
  }
  if (!is_limit) return set_most(target.used, count.most, count.fate);
  if (count.length) {
    const Span span = seconds_to_wait(*count.length, frame_).span;
    target.length = std::max(target.length.value_or(span), span);
  }
  return set_least(target.limit, count.least, count.fate);
}

Fate FeedbackReader::set_reset(std::size_t place, const Wait& wait) noexcept {
  Window& target = out_.windows()[place];
  bool& relative = drafts_[place].relative_reset;
  // A duration needs no clock, so that it is better than an instant; the longer of two is never
  // early.
  const bool better = !target.reset || (wait.relative && !relative) ||
                      (wait.relative == relative && wait.span > *target.reset);
  if (!better) return wait.span == *target.reset ? wait.fate : Fate::superseded;
  target.reset = wait.span;
  relative = wait.relative;
  return wait.fate;
}

Fate FeedbackReader::read_wait(const FieldName& name, std::string_view value) noexcept {
  const bool in_ms = name.meaning == Meaning::reset_ms || name.meaning == Meaning::length_ms;
  const bool is_reset = name.meaning == Meaning::reset || name.meaning == Meaning::reset_ms;
  const TimeUnit unit = in_ms ? TimeUnit::milliseconds : unit_of(name.source);
  const Wait wait = parse_wait(value, unit, frame_);
  if (!wait.known()) return wait.fate;
  if (!is_reset && !wait.relative) return Fate::malformed;
  const std::size_t place = window(name.source, name.group);
  if (place == Feedback::max_windows) return Fate::too_many;
  if (is_reset) return set_reset(place, wait);
  out_.windows()[place].length = wait.span;
  return wait.fate;
}

Fate FeedbackReader::read_used_of_limit(const FieldName& name, std::string_view value) noexcept {
  std::string_view rest = value;
  const WholeCount spent = parse_whole_count(take_item(rest, '/'));
  const WholeCount most = parse_whole_count(rest);
  if (!spent.known()) return spent.fate;
  if (!most.known()) return most.fate;
  const std::size_t place = window(name.source, name.group);
  if (place == Feedback::max_windows) return Fate::too_many;
  (void)set_most(out_.windows()[place].used, spent.value, Fate::used);
  return set_least(out_.windows()[place].limit, most.value, most.fate);
}

Fate FeedbackReader::read_text(const FieldName& name, std::string_view value) noexcept {
  if (value.size() > Text::capacity) return Fate::too_long;
  if (!is_printable(value)) return Fate::malformed;
  if (name.meaning == Meaning::global) {
    const bool yes = equal_ignoring_case(value, "true");
    if (!yes && !equal_ignoring_case(value, "false")) return Fate::malformed;
    if (yes && out_.scope.empty()) (void)out_.scope.assign("global");
    return Fate::used;
  }
  Text* target = name.meaning == Meaning::scope         ? &out_.scope
                 : name.meaning == Meaning::rule_policy ? &rule_policy_
                                                        : &out_.reason;
  if (name.meaning == Meaning::resource) {
    const std::size_t place = window(name.source, name.group);
    if (place == Feedback::max_windows) return Fate::too_many;
    target = &out_.windows()[place].resource;
  }
  (void)target->assign(value);
  return Fate::used;
}

}  // namespace sluice::http::detail
