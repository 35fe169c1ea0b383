// Combines headers into a Feedback. One object reads one response; single-threaded.
#pragma once

#include "sluice/http/parse.hpp"
#include "src/http/field_name.hpp"
#include "src/http/structured.hpp"
#include "src/http/wait.hpp"

namespace sluice::http::detail {

/// The sources of windows of the draft's headers. A policy without a name has a source of its own
/// until its state is read.
inline constexpr std::string_view state_source = "ratelimit";
inline constexpr std::string_view policy_source = "ratelimit-policy";

class FeedbackReader {
 public:
  /// REQUIRES: a frame within the bounds of Frame. `cached`: counts are ignored. `headers`: all of
  /// the response, since the form of some depends on others; they outlive this.
  FeedbackReader(const Frame& frame, bool cached, const Sieve& headers) noexcept;

  /// Reads one header. REQUIRES: it outlives the call, as its name does.
  void read(const FieldName& name, std::string_view value, std::uint16_t place) noexcept;
  /// Combines the headers. The last call of a reader.
  [[nodiscard]] Feedback finish() noexcept;

 private:
  /// A requested wait, and the note of its header.
  struct Asked {
    bool known = false;
    Span span{0};
    std::size_t note = 0;
  };
  /// Data of a window that is not part of the result.
  struct Draft {
    bool relative_reset = false;
    bool is_rule = false;
  };

  [[nodiscard]] Fate read_value(const FieldName& name, std::string_view value) noexcept;
  Fate read_retry_after(Asked& asked, TimeUnit unit, std::string_view value) noexcept;
  Fate read_count(const FieldName& name, std::string_view value) noexcept;
  Fate read_wait(const FieldName& name, std::string_view value) noexcept;
  Fate read_used_of_limit(const FieldName& name, std::string_view value) noexcept;
  Fate read_text(const FieldName& name, std::string_view value) noexcept;
  // What single vendors do otherwise.
  Fate read_limit_in(const FieldName& name, std::string_view value) noexcept;
  Fate read_used_in_interval(const FieldName& name, std::string_view value) noexcept;
  Fate read_rate(const FieldName& name, std::string_view value) noexcept;
  [[nodiscard]] bool is_pair(const FieldName& name) const noexcept;
  Fate read_pair(const FieldName& name, std::string_view value) noexcept;
  Fate read_sentry(const FieldName& name, std::string_view value) noexcept;
  Fate read_categories(const FieldName& name, std::string_view item, bool applies) noexcept;
  [[nodiscard]] bool is_rule(const FieldName& name) const noexcept;
  Fate read_rule(const FieldName& name, std::string_view value) noexcept;
  /// The value of a header, by its name in lower case; empty if there is none.
  [[nodiscard]] std::string_view value_of(std::string_view name) const noexcept;

  // The draft's.
  Fate read_list(Meaning meaning, std::string_view value) noexcept;
  Fate read_dictionary(std::string_view value) noexcept;
  Fate read_state(const Member& member) noexcept;
  Fate read_policy(const Member& member) noexcept;

  /// The index of the window of this name, which is added if there is none; Feedback::max_windows
  /// if there is no room.
  std::size_t window(std::string_view source, std::string_view name,
                     std::string_view partition = {}) noexcept;
  /// The same of a rule, which has a window of this name for each length.
  std::size_t rule_window(const FieldName& name, std::string_view rule, Span length) noexcept;
  Fate set_reset(std::size_t place, const Wait& wait) noexcept;
  void settle_retry_after() noexcept;
  void settle_windows() noexcept;
  void join_policies() noexcept;

  Frame frame_;
  bool cached_;
  const Sieve& headers_;
  Feedback out_;
  Text rule_policy_{};
  std::array<Draft, Feedback::max_windows> drafts_{};
  Asked seconds_;
  Asked milliseconds_;
};

}  // namespace sluice::http::detail
