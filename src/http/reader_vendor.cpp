// Counts in forms of one vendor each: Binance's intervals, Amazon's rates, ESI's windows, and
// Strava's pairs.
#include <algorithm>
#include <array>

#include "src/http/ascii.hpp"
#include "src/http/counts.hpp"
#include "src/http/reader.hpp"

namespace sluice::http::detail {
namespace {

constexpr std::uint64_t million = 1'000'000;

/// The interval of `1m` or `10s`, in Binance's letters; none if it is no such text.
std::optional<Span> interval_of(std::string_view text) noexcept {
  const auto number = take_decimal(text);
  if (!number || number->negative || number->whole == 0 || number->micro != 0) return std::nullopt;
  const Word unit = text == "s"   ? 1'000'000
                    : text == "m" ? 60'000'000
                    : text == "h" ? 3'600'000'000
                    : text == "d" ? 86'400'000'000
                                  : 0;
  if (unit == 0) return std::nullopt;
  return Span{number->times_rounded_up(unit)};
}

/// Strava's windows, which begin at their multiples since 1970.
struct NamedWindow {
  std::string_view name;
  Span length;
};
constexpr std::array<NamedWindow, 2> pair_windows{
    {{"15min", std::chrono::minutes{15}}, {"day", std::chrono::hours{24}}}};

struct TwoCounts {
  Fate fate = Fate::malformed;
  std::array<Word, 2> counts{};
};

/// `200,2000`
TwoCounts parse_pair(std::string_view value) noexcept {
  TwoCounts pair;
  for (Word& count : pair.counts) {
    const WholeCount next = parse_whole_count(take_item(value, ','));
    if (!next.known()) return {next.fate, {}};
    count = next.value;
  }
  pair.fate = value.empty() ? Fate::used : Fate::malformed;
  return pair;
}

}  // namespace

std::string_view FeedbackReader::value_of(std::string_view name) const noexcept {
  const auto picked = headers_.picked();
  const auto found = std::find_if(picked.begin(), picked.end(), [&](const Sieve::Picked& each) {
    return equal_ignoring_case(each.header.name, name);
  });
  return found == picked.end() ? std::string_view{} : trimmed(found->header.value);
}

/// `150/15m`
Fate FeedbackReader::read_limit_in(const FieldName& name, std::string_view value) noexcept {
  const WholeCount limit = parse_whole_count(take_item(value, '/'));
  if (!limit.known()) return limit.fate;
  const Wait length = parse_wait(value, TimeUnit::unknown, frame_);
  if (!length.known()) return length.fate == Fate::empty ? Fate::malformed : length.fate;
  if (!length.relative || length.span == Span{0}) return Fate::malformed;
  const std::size_t place = window(name.source, name.group);
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  target.length = std::max(target.length.value_or(length.span), length.span);
  return set_least(target.limit, limit.value, limit.fate);
}

/// `X-MBX-USED-WEIGHT-1M: 123`
Fate FeedbackReader::read_used_in_interval(const FieldName& name, std::string_view value) noexcept {
  const auto length = interval_of(name.group);
  if (!length && !name.group.empty()) return Fate::unknown;
  const WholeCount used = parse_whole_count(value);
  if (!used.known()) return used.fate;
  const std::size_t place = window(name.source, name.group);
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  if (length) target.length = std::min(*length, frame_.longest);
  return set_most(target.used, used.value, used.fate);
}

/// `0.0055`, a second.
Fate FeedbackReader::read_rate(const FieldName& name, std::string_view value) noexcept {
  const auto rate = take_decimal(value);
  if (!rate || !value.empty()) return Fate::malformed;
  if (rate->negative) return Fate::negative;
  const std::uint64_t millionths =
      rate->whole < million ? rate->whole * million + rate->micro : million * million;
  if (millionths == 0 && !rate->rounded) return Fate::malformed;
  const std::uint64_t in_us =
      (million * million + millionths - 1) / std::max(millionths, std::uint64_t{1});
  const Span interval{static_cast<Word>(in_us)};
  const std::size_t place = window(name.source, name.group);
  if (place == Feedback::max_windows) return Fate::too_many;
  Window& target = out_.windows()[place];
  const Span kept = std::min(interval, frame_.longest);
  if (target.interval && *target.interval > kept) return Fate::superseded;
  target.interval = kept;
  return interval > frame_.longest ? Fate::clamped : Fate::used;
}

bool FeedbackReader::is_pair(const FieldName& name) const noexcept {
  if (name.meaning != Meaning::limit && name.meaning != Meaning::usage) return false;
  if (!name.group.empty() || name.source.size() > Text::capacity - 6) return false;
  const auto is_told = [&](std::string_view word) {
    Text full;
    (void)full.assign(name.source);
    for (const char c : word) (void)full.push_back(c);
    return parse_pair(value_of(full.view())).fate == Fate::used;
  };
  return is_told("-limit") && is_told("-usage");
}

Fate FeedbackReader::read_pair(const FieldName& name, std::string_view value) noexcept {
  const TwoCounts pair = parse_pair(value);
  if (pair.fate != Fate::used) return pair.fate;
  for (std::size_t i = 0; i < pair_windows.size(); ++i) {
    const std::size_t place = window(name.source, pair_windows[i].name);
    if (place == Feedback::max_windows) return i == 0 ? Fate::too_many : Fate::partly;
    Window& target = out_.windows()[place];
    const Span length = pair_windows[i].length;
    target.length = std::min(length, frame_.longest);
    const Span left = length - frame_.server.time_since_epoch() % length;
    (void)set_reset(place, {Fate::used, std::min(left, frame_.longest), false});
    if (name.meaning == Meaning::usage) {
      (void)set_most(target.used, pair.counts[i], Fate::used);
    } else {
      (void)set_least(target.limit, pair.counts[i], Fate::used);
    }
  }
  return Fate::used;
}

}  // namespace sluice::http::detail
