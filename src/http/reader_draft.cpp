// The IETF draft's headers RateLimit and RateLimit-Policy, as structured lists, and in the form of
// earlier drafts.
#include <algorithm>

#include "src/http/reader.hpp"

namespace sluice::http::detail {
namespace {

using Shape = MemberReader::Shape;

/// A parameter that the draft calls a non-negative integer.
struct Number {
  Fate fate = Fate::used;
  std::optional<Word> value{};
};

Number number_of(const std::optional<BareItem>& item) noexcept {
  if (!item) return {};
  if (item->type != BareItem::Type::integer) return {.fate = Fate::malformed};
  if (item->number < 0) return {.fate = Fate::negative};
  return {.value = item->number};
}

Number parameter(const Member& member, std::string_view name) noexcept {
  return number_of(member.parameter(name));
}

/// A name or a partition. An absent one is empty.
Fate copy(const std::optional<BareItem>& item, Text& out) noexcept {
  if (!item || item->copy_to(out)) return Fate::used;
  out = {};
  return item->raw.size() > Text::capacity ? Fate::too_long : Fate::malformed;
}

/// The result for all items of a list.
struct Tally {
  std::size_t good = 0;
  bool clamped = false;
  std::optional<Fate> fault{};

  void count(Fate fate) noexcept {
    const bool sound = fate == Fate::used || fate == Fate::clamped || fate == Fate::past ||
                       fate == Fate::superseded;
    if (sound) ++good;
    clamped = clamped || fate == Fate::clamped;
    if (!sound && !fault) fault = fate;
  }
  [[nodiscard]] Fate fate() const noexcept {
    if (good == 0) return fault.value_or(Fate::empty);
    return fault ? Fate::partly : clamped ? Fate::clamped : Fate::used;
  }
};

/// Keeps the stricter count of two items of one name.
void set_least(std::optional<Word>& known, const std::optional<Word>& value) noexcept {
  if (value) known = std::min(known.value_or(word_limit), *value);
}

Fate worst(std::initializer_list<Fate> fates) noexcept {
  for (const Fate fate : fates) {
    if (fate != Fate::used) return fate;
  }
  return Fate::used;
}

}  // namespace

Fate FeedbackReader::read_list(Meaning meaning, std::string_view value) noexcept {
  if (!MemberReader::sound(value, Shape::list)) {
    return meaning == Meaning::rate_limit ? read_dictionary(value) : Fate::malformed;
  }
  MemberReader list(value, Shape::list);
  Member member;
  Tally tally;
  while (list.next(member)) {
    tally.count(meaning == Meaning::rate_limit ? read_state(member) : read_policy(member));
  }
  return tally.fate();
}

/// `"default";r=50;t=30`
Fate FeedbackReader::read_state(const Member& member) noexcept {
  Text name;
  Text partition;
  const Number remaining = parameter(member, "r");
  const Number reset = parameter(member, "t");
  const Fate fate = worst({copy(member.item, name), copy(member.parameter("pk"), partition),
                           remaining.fate, reset.fate});
  if (fate != Fate::used) return fate;
  if (!remaining.value) return Fate::malformed;
  const std::size_t place = window(state_source, name.view(), partition.view());
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  set_least(target.remaining, remaining.value);
  return reset.value ? set_reset(place, seconds_to_wait(*reset.value, frame_)) : Fate::used;
}

/// `"default";q=100;w=60`, or `100;w=60` in earlier drafts.
Fate FeedbackReader::read_policy(const Member& member) noexcept {
  Text name;
  Text partition;
  Text unit;
  const bool unnamed = member.item.type == BareItem::Type::integer;
  const Number quota = unnamed ? number_of(member.item) : parameter(member, "q");
  const Number length = parameter(member, "w");
  const Fate fate = worst({unnamed ? Fate::used : copy(member.item, name),
                           copy(member.parameter("pk"), partition),
                           copy(member.parameter("qu"), unit), quota.fate, length.fate});
  if (fate != Fate::used) return fate;
  if (!quota.value) return Fate::malformed;
  if (unnamed) {
    Window policy{.limit = *quota.value};
    (void)policy.source.assign(policy_source);
    if (length.value) policy.length = seconds_to_wait(*length.value, frame_).span;
    return out_.add(policy) ? Fate::used : Fate::too_many;
  }
  const std::size_t place = window(state_source, name.view(), partition.view());
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  set_least(target.limit, quota.value);
  target.unit = unit;
  if (length.value) {
    const Span span = seconds_to_wait(*length.value, frame_).span;
    target.length = std::max(target.length.value_or(span), span);
  }
  return Fate::used;
}

/// `limit=100, remaining=50, reset=5`
Fate FeedbackReader::read_dictionary(std::string_view value) noexcept {
  if (!MemberReader::sound(value, Shape::dictionary)) return Fate::malformed;
  Number limit;
  Number remaining;
  Number reset;
  MemberReader members(value, Shape::dictionary);
  for (Member member; members.next(member);) {
    if (member.key == "limit") limit = number_of(member.item);
    if (member.key == "remaining") remaining = number_of(member.item);
    if (member.key == "reset") reset = number_of(member.item);
  }
  const Fate fate = worst({limit.fate, remaining.fate, reset.fate});
  if (fate != Fate::used) return fate;
  if (!limit.value && !remaining.value) return Fate::malformed;
  const std::size_t place = window(state_source, {});
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  set_least(target.limit, limit.value);
  set_least(target.remaining, remaining.value);
  return reset.value ? set_reset(place, seconds_to_wait(*reset.value, frame_)) : Fate::used;
}

}  // namespace sluice::http::detail
