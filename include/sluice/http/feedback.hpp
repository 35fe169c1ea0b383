// Feedback: a server's response headers about its limits, parsed. Plain values without an
// allocation; no threading rule.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/detail/arguments.hpp"
#include "sluice/time.hpp"

namespace sluice::http {

/// A header field: views of the caller's bytes.
struct Header {
  std::string_view name;
  std::string_view value;
};

/// A string of up to `capacity` bytes without an allocation.
class Text {
 public:
  static constexpr std::size_t capacity = 64;

  constexpr Text() noexcept = default;

  /// False, and nothing changes, if `text` is longer than `capacity`.
  constexpr bool assign(sluice::detail::TextArg given) noexcept {
    const std::string_view text = given;
    if (text.size() > capacity) return false;
    std::copy(text.begin(), text.end(), bytes_.begin());
    size_ = static_cast<std::uint8_t>(text.size());
    return true;
  }
  /// False, and nothing changes, if there is no room.
  constexpr bool push_back(char byte) noexcept {
    if (size_ == capacity) return false;
    bytes_[size_++] = byte;
    return true;
  }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  friend constexpr bool operator==(const Text& a, const Text& b) noexcept {
    return a.view() == b.view();
  }
  friend constexpr bool operator==(const Text& a, sluice::detail::TextArg b) noexcept {
    return a.view() == b.view();
  }

 private:
  std::array<char, capacity> bytes_{};
  std::uint8_t size_ = 0;
};

/// How a header was processed.
enum class Fate : std::uint8_t {
  used,
  partly,      ///< some items of its list were used, others were malformed or too many
  clamped,     ///< used, but a number was above the longest wait or the largest count
  past,        ///< used: its time has passed, so that the wait is zero
  superseded,  ///< another header is more precise or more cautious
  empty,       ///< ignored, here and below
  malformed,   ///< a syntax error: letters, NaN, bytes beyond ASCII
  negative,
  no_unit,   ///< a number of seconds or milliseconds, and this vendor's unit is not known
  too_long,  ///< the value has more than max_value_bytes, or a text in it more than Text::capacity
  too_many,  ///< above the bounds of a Feedback
  cached,    ///< counts in a response from a cache (`Age` above zero)
  unknown,   ///< named like a header about a limit, but of unknown meaning
};

/// A short text for logs.
[[nodiscard]] std::string_view text(Fate fate) noexcept;

/// The result for one header about limits.
struct Note {
  std::uint16_t header;  ///< its index among all headers, from 0
  Fate fate;
  friend bool operator==(const Note&, const Note&) = default;
};

/// One limit of the server. Members that the headers did not contain are empty.
struct Window {
  /// The family of headers, in lower case: "ratelimit", "x-ratelimit", "anthropic-ratelimit".
  Text source{};
  /// The policy, or the group in the names of the headers: "default", "requests", "daily", "1m".
  /// May be empty.
  Text name{};
  /// The resource: GitHub's resource, Discord's bucket, GitLab's name, Path of Exile's policy. May
  /// be empty.
  Text resource{};
  /// The bytes of the draft's partition key (`pk`).
  Text partition{};
  /// The draft's quota unit (`qu`); empty means requests.
  Text unit{};
  std::optional<Word> limit{};      ///< units in a window
  std::optional<Word> remaining{};  ///< units left
  std::optional<Word> used{};       ///< units spent, as Binance tells them without a limit
  std::optional<Span> reset{};      ///< from Feedback::at until more are available; 0 or longer
  std::optional<Span> length{};     ///< of the window
  /// The time between two units at the server's rate, rounded up, where it tells a rate instead of
  /// a count: Amazon's 0.0055 a second is a unit in 181.818182 s.
  std::optional<Span> interval{};

  [[nodiscard]] bool exhausted() const noexcept { return remaining && *remaining == 0; }
};

/// The parsed headers of one response. Every span is in [0, ParseOptions::longest], every count in
/// [0, word_limit].
struct Feedback {
  static constexpr std::size_t max_windows = 16;
  /// The most headers about limits; more are ignored.
  static constexpr std::size_t max_notes = 64;
  /// The most headers of any kind; more are ignored.
  static constexpr std::size_t max_headers = 1024;
  static constexpr std::size_t max_value_bytes = 4096;

  /// The time of parsing, from which spans count.
  Time at{};
  /// When the server made the response, at the earliest: its `Date`, not before
  /// ParseOptions::sent; without a `Date`, `sent`; without both, `at`. Never after `at`.
  Time made{};
  /// The wait that the server explicitly asks for, as it stands there: also 0.
  std::optional<Span> retry_after{};
  /// Whom the limit concerns, if given. Discord: "user", "global" or "shared".
  Text scope{};
  /// Which limit was hit, if given. Stripe: "endpoint-rate".
  Text reason{};
  /// True if there were more headers than the bounds above.
  bool truncated = false;

  [[nodiscard]] std::span<const Window> windows() const noexcept {
    return std::span(windows_).first(window_count_);
  }
  [[nodiscard]] std::span<const Note> notes() const noexcept {
    return std::span(notes_).first(note_count_);
  }
  /// The first window of this name, or null.
  [[nodiscard]] const Window* find(sluice::detail::TextArg name) const noexcept;

  /// The time for which no call should be made: `retry_after` if that is above zero, else the
  /// longest reset of the exhausted windows if that is. Otherwise none, which is *unknown*: after a
  /// refusal it does not mean "now". A successful response can ask for a wait, too.
  ///
  ///     if (response.status == 429) throw RateLimited(feedback.wait());  // unknown: Call backs
  ///     off
  [[nodiscard]] std::optional<Span> wait() const noexcept;
  /// The same as an instant of the clock of `at`.
  [[nodiscard]] std::optional<Time> retry_at() const noexcept {
    const auto span = wait();
    return span ? std::optional(at + *span) : std::nullopt;
  }

  /// For the parser. False if there is no room.
  bool add(const Window& window) noexcept;
  bool add(Note note) noexcept;
  [[nodiscard]] std::span<Window> windows() noexcept {
    return std::span(windows_).first(window_count_);
  }
  [[nodiscard]] std::span<Note> notes() noexcept { return std::span(notes_).first(note_count_); }
  void remove(std::size_t window) noexcept;

 private:
  std::array<Window, max_windows> windows_{};
  std::array<Note, max_notes> notes_{};
  std::uint8_t window_count_ = 0;
  std::uint8_t note_count_ = 0;
};

}  // namespace sluice::http
