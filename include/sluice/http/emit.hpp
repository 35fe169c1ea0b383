// Writes response headers about limits for clients. Values; no threading rule.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/decision.hpp"
#include "sluice/detail/arguments.hpp"
#include "sluice/http/feedback.hpp"
#include "sluice/limiters/window_limit.hpp"
#include "sluice/quota.hpp"

namespace sluice::http {

/// The description of a limit for clients: a name, a number of units, a window, and the unit.
/// Immutable.
///
///     const Policy policy("burst", quota);
///     const Policy daily("daily", WindowLimit{10'000, 24h}, {.partition = account});
class Policy {
 public:
  struct Options {
    /// The partition key, which clients see: any bytes, up to Text::capacity; empty omits it.
    sluice::detail::TextArg partition{};
    /// The unit, printable ASCII; empty means requests. The draft also defines "content-bytes" and
    /// "concurrent-requests".
    sluice::detail::TextArg unit{};
  };

  /// The burst, in the time in which it is refilled. Throws std::invalid_argument if `name` is
  /// empty, or if a text is longer than Text::capacity or, except for the partition, not printable
  /// ASCII.
  Policy(sluice::detail::TextArg name, const Quota& quota) : Policy(name, quota, Options{}) {}
  Policy(sluice::detail::TextArg name, const Quota& quota, const Options& options);
  /// The limit, in its span. Throws as above, and if the limit is not in [0, word_limit] or the
  /// span not in [1 us, word_limit].
  Policy(sluice::detail::TextArg name, WindowLimit window) : Policy(name, window, Options{}) {}
  Policy(sluice::detail::TextArg name, WindowLimit window, const Options& options);

  [[nodiscard]] std::string_view name() const noexcept { return name_.view(); }
  [[nodiscard]] std::string_view partition() const noexcept { return partition_.view(); }
  [[nodiscard]] std::string_view unit() const noexcept { return unit_.view(); }
  [[nodiscard]] Word limit() const noexcept { return limit_; }
  [[nodiscard]] Span length() const noexcept { return length_; }

 private:
  Text name_;
  Text partition_;
  Text unit_;
  Word limit_;
  Span length_;
};

/// A policy and a decision under it.
struct Limited {
  const Policy& policy;
  Decision decision;
};

/// The form of X-RateLimit-Reset. The header does not say which one it is; most clients guess by
/// its size.
enum class ResetForm : std::uint8_t {
  seconds,  ///< from now on: needs no synchronised clocks
  epoch,    ///< seconds since 1970 by the store's clock, as GitHub and X write it
};

struct EmitOptions {
  bool rate_limit = true;    ///< RateLimit and RateLimit-Policy, of the IETF draft
  bool x_rate_limit = true;  ///< X-RateLimit-Limit, -Remaining and -Reset, of one policy
  /// The name of that policy, whichever refused; if no limit has it, the three headers are omitted.
  /// Empty: the tightest of those with the unit of the first limit.
  sluice::detail::TextArg primary{};
  ResetForm reset = ResetForm::seconds;
};

/// Headers in a fixed buffer: written without an allocation, copied as a whole.
class LimitHeaders {
 public:
  static constexpr std::size_t max_headers = 6;
  /// The most policies; more are omitted.
  static constexpr std::size_t max_policies = 4;
  /// One item of a list: three texts, which escapes and base64 at most double, three numbers, and
  /// separators.
  static constexpr std::size_t max_item_bytes = 6 * Text::capacity + 84;
  static constexpr std::size_t max_bytes = 2 * max_policies * max_item_bytes + 96;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// The i-th header: a view of this object. REQUIRES: i < size().
  [[nodiscard]] Header operator[](std::size_t i) const noexcept {
    const Place& place = places_[i];
    return {place.name, {bytes_.data() + place.begin, place.size}};
  }
  /// The value of a header by its exact name, or an empty view.
  [[nodiscard]] std::string_view operator[](sluice::detail::TextArg name) const noexcept;

  /// Calls `set(name, value)` for each header, both std::string_view.
  ///
  ///     headers.for_each([&](auto name, auto value) { response.set(name, value); });
  template <class Set>
  void for_each(Set set) const {
    for (std::size_t i = 0; i < count_; ++i) set((*this)[i].name, (*this)[i].value);
  }
  /// The headers as strings.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> strings() const;

  /// For limit_headers(): begins a header; write() appends to its value.
  void begin(std::string_view name) noexcept;
  void write(std::string_view text) noexcept;
  void write(Word number) noexcept;

 private:
  struct Place {
    std::string_view name{};  // a literal
    std::uint16_t begin = 0;
    std::uint16_t size = 0;
  };
  std::array<Place, max_headers> places_{};
  std::array<char, max_bytes> bytes_{};
  std::size_t count_ = 0;
  std::size_t used_ = 0;
};

/// The response headers for a request that `limits` decided, admitted or refused. All times are
/// rounded up to whole seconds, so that a client that waits for them is never early; the longest is
/// three years (99,999,999 s), because clients take larger numbers for a date.
///
/// Worked example: 10 a second with burst 5, refused with retry_after 100 ms, policy "burst":
///
///     Retry-After: 1
///     RateLimit-Policy: "burst";q=5;w=1
///     RateLimit: "burst";r=0;t=1
///     X-RateLimit-Limit: 5
///     X-RateLimit-Remaining: 0
///     X-RateLimit-Reset: 1
///
/// Retry-After is in refusals only, and is the longest wait of the limits that refused. In a
/// refusal `t` and the reset are the wait, else the time until nothing is spent any more. Several
/// limits, such as those of a plan, are one item each. The X-RateLimit headers describe one limit
/// only, and clients compare them between responses: name it as EmitOptions::primary. Without a
/// name, it is the one with the longest wait among those that refused, else the one with the least
/// remaining (the first of equal ones), among those with the unit of the first limit: requests are
/// never compared with bytes. Empty if there are no limits.
///
/// Clients are told nothing of an unlimited policy. A refusal by a limit of 0 has no Retry-After,
/// no `t` and no reset, since no time would be true.
[[nodiscard]] LimitHeaders limit_headers(std::span<const Limited> limits,
                                         const EmitOptions& options = {}) noexcept;
[[nodiscard]] LimitHeaders limit_headers(const Policy& policy, const Decision& decision,
                                         const EmitOptions& options = {}) noexcept;

}  // namespace sluice::http
