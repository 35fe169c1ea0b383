// Headers to try, and what holds of every Feedback, whatever was parsed. For the random test and
// the fuzzer.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "tests/http/parse.hpp"

namespace sluice::http {

/// Names of headers of every kind that is read, and of two that are not.
inline const std::vector<std::string_view> known_names = parts_of(
    "Retry-After retry-after-ms RateLimit RateLimit-Policy RateLimit-Limit RateLimit-Remaining "
    "RateLimit-Reset X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset X-RateLimit-Used "
    "X-RateLimit-Reset-After x-ratelimit-limit-a anthropic-ratelimit-a-reset X-RateLimit-Global "
    "X-RateLimit-Scope X-RateLimit-Resource X-Shopify-Shop-Api-Call-Limit Date Age X-Rate-Limit "
    "X-HubSpot-RateLimit-Interval-Milliseconds X-RateLimit-Weather X-RateLimit-Usage "
    "X-ReadRateLimit-Limit X-ReadRateLimit-Usage X-MBX-USED-WEIGHT-1M X-MBX-ORDER-COUNT-10S "
    "x-amzn-RateLimit-Limit gw-ratelimit-reset acme-ratelimit-reset X-Sentry-Rate-Limits "
    "X-ESI-Error-Limit-Remain X-Rate-Limit-Rules X-Rate-Limit-Ip X-Rate-Limit-Ip-State "
    "Content-Type",
    ' ');

inline bool within(const std::optional<Span>& span, Span longest) {
  return !span || (*span >= Span{0} && *span <= longest);
}

inline bool within(const std::optional<Word>& count) {
  return !count || (*count >= 0 && *count <= word_limit);
}

/// REQUIRES: `longest` in [0, word_limit].
inline bool is_sound(const Feedback& feedback, std::size_t headers, Span longest) {
  const auto sound_window = [&](const Window& w) {
    return within(w.limit) && within(w.remaining) && within(w.used) && within(w.reset, longest) &&
           within(w.length, longest) && within(w.interval, longest) &&
           (w.limit || w.remaining || w.used || w.reset || w.length || w.interval);
  };
  const auto sound_note = [&](const Note& n) { return n.header < headers && text(n.fate) != "?"; };
  const auto wait = feedback.wait();
  return within(feedback.retry_after, longest) && within(wait, longest) && wait != Span{0} &&
         feedback.retry_at() == (wait ? std::optional(feedback.at + *wait) : std::nullopt) &&
         feedback.made <= feedback.at && std::ranges::all_of(feedback.windows(), sound_window) &&
         std::ranges::all_of(feedback.notes(), sound_note);
}

}  // namespace sluice::http
