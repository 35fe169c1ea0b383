// Writes the headers for clients, in the forms of the draft and of X-RateLimit.
#include "sluice/http/emit.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace sluice::http {
namespace {

constexpr Word second = 1'000'000;
constexpr Word most_seconds = 99'999'999;

/// Seconds, rounded up, and at most the longest number that is not read as a date.
Word whole_seconds(Span span) noexcept {
  const Word us = std::clamp(span.count(), Word{0}, word_limit);
  return std::min((us + second - 1) / second, most_seconds);
}

/// The time until more is available.
Span told_wait(const Decision& decision) noexcept {
  return decision.allowed ? decision.reset_after : decision.retry_after;
}

/// A refusal by a limit of 0: nothing is told about its end.
bool is_never(const Decision& decision) noexcept {
  return !decision.allowed && decision.limit == 0 && decision.retry_after == Decision::never;
}

/// Of an unlimited policy, clients are told nothing.
bool is_told(const Limited& limited) noexcept { return limited.policy.limit() != unlimited; }

Text checked(const char* what, std::string_view given, bool any_bytes) {
  Text text;
  const bool printable = any_bytes || std::all_of(given.begin(), given.end(),
                                                  [](char c) { return c >= ' ' && c <= '~'; });
  if (printable && text.assign(given)) return text;
  throw std::invalid_argument("the " + std::string(what) + " of a policy must have at most " +
                              std::to_string(Text::capacity) + " bytes" +
                              (any_bytes ? "" : " of printable ASCII") + ", got " +
                              std::to_string(given.size()) + " bytes");
}

void write_string(LimitHeaders& out, std::string_view text) noexcept {
  out.write("\"");
  for (const char& c : text) {
    if (c == '"' || c == '\\') out.write("\\");
    out.write(std::string_view(&c, 1));
  }
  out.write("\"");
}

void write_base64(LimitHeaders& out, std::string_view bytes) noexcept {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t held = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      held = held << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out.write(k <= count ? digits.substr(held >> (18 - 6 * k) & 63U, 1) : "=");
    }
  }
}

void write_partition(LimitHeaders& out, const Policy& policy) noexcept {
  if (policy.partition().empty()) return;
  out.write(";pk=:");
  write_base64(out, policy.partition());
  out.write(":");
}

void write_policy(LimitHeaders& out, const Policy& policy) noexcept {
  write_string(out, policy.name());
  out.write(";q=");
  out.write(std::min(policy.limit(), Word{999'999'999'999'999}));
  out.write(";w=");
  out.write(whole_seconds(policy.length()));
  if (!policy.unit().empty()) {
    out.write(";qu=");
    write_string(out, policy.unit());
  }
  write_partition(out, policy);
}

void write_state(LimitHeaders& out, const Limited& limited) noexcept {
  write_string(out, limited.policy.name());
  out.write(";r=");
  // The largest integer of a structured field has 15 digits.
  out.write(std::clamp(limited.decision.remaining, Word{0}, Word{999'999'999'999'999}));
  if (!is_never(limited.decision)) {
    out.write(";t=");
    out.write(whole_seconds(told_wait(limited.decision)));
  }
  write_partition(out, limited.policy);
}

template <class Write>
void write_list(LimitHeaders& out, std::string_view name, std::span<const Limited> limits,
                Write item) noexcept {
  std::size_t told = 0;
  for (const Limited& limit : limits) {
    if (!is_told(limit) || told == LimitHeaders::max_policies) continue;
    if (told++ == 0) {
      out.begin(name);
    } else {
      out.write(", ");
    }
    item(limit);
  }
}

/// True if `a` is tighter than `b` for a client.
bool is_tighter(const Limited& a, const Limited& b) noexcept {
  if (a.decision.allowed != b.decision.allowed) return b.decision.allowed;
  if (!a.decision.allowed) return a.decision.retry_after > b.decision.retry_after;
  return a.decision.remaining < b.decision.remaining;
}

/// The unit; by the draft, requests if it is not given.
std::string_view unit_of(const Policy& policy) noexcept {
  return policy.unit().empty() ? "requests" : policy.unit();
}

/// The limit of the X-RateLimit headers, or null. REQUIRES: not empty.
const Limited* primary_of(std::span<const Limited> limits, std::string_view name) noexcept {
  const Limited* chosen = nullptr;
  for (const Limited& limit : limits) {
    if (!is_told(limit)) continue;
    const bool applies = name.empty() ? unit_of(limit.policy) == unit_of(limits.front().policy)
                                      : limit.policy.name() == name;
    if (applies && (chosen == nullptr || is_tighter(limit, *chosen))) chosen = &limit;
  }
  return chosen;
}

void write_triple(LimitHeaders& out, const Limited& limited, ResetForm form) noexcept {
  const Decision& decision = limited.decision;
  out.begin("X-RateLimit-Limit");
  out.write(limited.policy.limit());
  out.begin("X-RateLimit-Remaining");
  out.write(std::clamp(decision.remaining, Word{0}, word_limit));
  if (is_never(decision)) return;
  out.begin("X-RateLimit-Reset");
  const Span wait{whole_seconds(told_wait(decision)) * second};
  if (form == ResetForm::seconds) {
    out.write(wait.count() / second);
  } else {
    const Word at = std::clamp(to_word(decision.at), Word{0}, word_limit);
    out.write((at + std::clamp(told_wait(decision), Span{0}, wait).count() + second - 1) / second);
  }
}

}  // namespace

Policy::Policy(sluice::detail::TextArg name, const Quota& quota, const Options& options)
    : Policy(name, WindowLimit{quota.capacity(), std::max(quota.full_after(), Span{1})}, options) {}

Policy::Policy(sluice::detail::TextArg name, WindowLimit window, const Options& options)
    : name_(checked("name", name, false)),
      partition_(checked("partition", options.partition, true)),
      unit_(checked("unit", options.unit, false)),
      limit_(window.limit),
      length_(window.span) {
  if (name_.empty()) throw std::invalid_argument("a policy needs a name");
  if (limit_ < 0 || limit_ > word_limit) {
    throw std::invalid_argument("the limit of a policy must be 0 to " + std::to_string(word_limit) +
                                ", got " + std::to_string(limit_));
  }
  if (length_.count() < 1 || length_.count() > word_limit) {
    throw std::invalid_argument("the window of a policy must be 1 to " +
                                std::to_string(word_limit) + " us, got " +
                                std::to_string(length_.count()) + " us");
  }
}

std::string_view LimitHeaders::operator[](sluice::detail::TextArg name) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (places_[i].name == name.view()) return (*this)[i].value;
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> LimitHeaders::strings() const {
  std::vector<std::pair<std::string, std::string>> all;
  for_each([&](std::string_view name, std::string_view value) { all.emplace_back(name, value); });
  return all;
}

void LimitHeaders::begin(std::string_view name) noexcept {
  places_[count_++] = {name, static_cast<std::uint16_t>(used_), 0};
}

void LimitHeaders::write(std::string_view text) noexcept {
  std::copy(text.begin(), text.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ += text.size();
  Place& place = places_[count_ - 1];
  place.size = static_cast<std::uint16_t>(place.size + text.size());
}

void LimitHeaders::write(Word number) noexcept {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  write(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

LimitHeaders limit_headers(std::span<const Limited> limits, const EmitOptions& options) noexcept {
  LimitHeaders out;
  if (limits.empty()) return out;
  const Decision& tightest = std::min_element(limits.begin(), limits.end(), is_tighter)->decision;
  if (!tightest.allowed && !is_never(tightest)) {
    out.begin("Retry-After");
    // A refusal without a hint is retried after a second, not at once.
    out.write(std::max(whole_seconds(tightest.retry_after), Word{1}));
  }
  if (options.rate_limit) {
    write_list(out, "RateLimit-Policy", limits,
               [&](const Limited& l) { write_policy(out, l.policy); });
    write_list(out, "RateLimit", limits, [&](const Limited& l) { write_state(out, l); });
  }
  const Limited* const primary = primary_of(limits, options.primary);
  if (options.x_rate_limit && primary != nullptr) write_triple(out, *primary, options.reset);
  return out;
}

LimitHeaders limit_headers(const Policy& policy, const Decision& decision,
                           const EmitOptions& options) noexcept {
  const Limited limited{policy, decision};
  return limit_headers(std::span(&limited, 1), options);
}

}  // namespace sluice::http
