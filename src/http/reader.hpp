// Puts what headers say together into a Feedback. One object reads one response; single-threaded.
#pragma once

#include "sluice/http/parse.hpp"
#include "src/http/field_name.hpp"
#include "src/http/structured.hpp"
#include "src/http/wait.hpp"

namespace sluice::http::detail {

/// Sources of windows that the draft's headers tell of. A policy without a name waits under a
/// source of its own for the state that belongs to it.
inline constexpr std::string_view state_source = "ratelimit";
inline constexpr std::string_view policy_source = "ratelimit-policy";

class FeedbackReader {
 public:
  /// REQUIRES: a frame within the bounds of Frame. `cached`: counts are not taken.
  FeedbackReader(const Frame& frame, bool cached) noexcept;

  /// Reads one header. REQUIRES: it outlives the call, as its name does.
  void read(const FieldName& name, std::string_view value, std::uint16_t place) noexcept;
  /// Puts together what several headers said. The reader is then over.
  [[nodiscard]] Feedback finish() noexcept;

 private:
  /// A wait that was asked for, and the note of the header that did.
  struct Asked {
    bool known = false;
    Span span{0};
    std::size_t note = 0;
  };
  /// What is known of a window but is no part of the answer.
  struct Draft {
    bool relative_reset = false;
    std::optional<Word> used{};
  };

  [[nodiscard]] Fate read_value(const FieldName& name, std::string_view value) noexcept;
  Fate read_retry_after(Asked& asked, TimeUnit unit, std::string_view value) noexcept;
  Fate read_count(const FieldName& name, std::string_view value) noexcept;
  Fate read_wait(const FieldName& name, std::string_view value) noexcept;
  Fate read_used_of_limit(const FieldName& name, std::string_view value) noexcept;
  Fate read_text(const FieldName& name, std::string_view value) noexcept;
  Fate read_list(Meaning meaning, std::string_view value) noexcept;
  Fate read_dictionary(std::string_view value) noexcept;
  Fate read_state(const Member& member) noexcept;
  Fate read_policy(const Member& member) noexcept;

  /// The place of the window of this name, which is made if there is none; or Feedback::max_windows
  /// if there is no room.
  std::size_t window(std::string_view source, std::string_view name,
                     std::string_view partition = {}) noexcept;
  Fate set_reset(std::size_t place, const Wait& wait) noexcept;
  void settle_retry_after() noexcept;
  void settle_windows() noexcept;
  void join_policies() noexcept;

  Frame frame_;
  bool cached_;
  Feedback out_;
  std::array<Draft, Feedback::max_windows> drafts_{};
  Asked seconds_;
  Asked milliseconds_;
};

}  // namespace sluice::http::detail
