// What goes wrong with the calls to a FaultyStore, one after the other, as values or as a text.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/testing/detail/cursor.hpp"
#include "sluice/testing/detail/error_names.hpp"
#include "sluice/time.hpp"

namespace sluice::testing {

/// What becomes of one call.
struct Fault {
  std::error_code error{};  ///< what the caller is told; none: the true answer
  bool executed = true;     ///< whether the store behind is asked at all
  Span delay{0};            ///< how late the answer comes, by the store's clock

  /// Nothing goes wrong.
  [[nodiscard]] static Fault none() noexcept { return {}; }
  /// The call ends in `error`, and nothing was executed.
  [[nodiscard]] static Fault not_executed(std::error_code error = Errc::timed_out) noexcept {
    return {error, false, Span{0}};
  }
  /// The call is executed, and its answer is lost.
  [[nodiscard]] static Fault answer_lost(std::error_code error = Errc::unknown) noexcept {
    return {error, true, Span{0}};
  }
  /// The call never arrives, and the caller cannot know.
  [[nodiscard]] static Fault request_lost() noexcept { return {Errc::unknown, false, Span{0}}; }
  /// The same, answered `span` later.
  [[nodiscard]] Fault late(Span span) const noexcept {
    Fault fault = *this;
    fault.delay = span;
    return fault;
  }

  [[nodiscard]] bool is_fault() const noexcept { return error || delay > Span{0}; }
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// A list of what happens to one call after the other:
///
///     FaultScript script("ok ok timeout unknown ok*3 delay(50ms)");
///
/// `ok`; the name of an Errc, such as `not_connected`: it was not executed, but after `unknown`,
/// `server_error` and `protocol_error` it was, and the answer is lost; `timeout` is `timed_out`;
/// `dropped` is Errc::unknown of a request that never arrived; `delay(50ms)` the true answer 50 ms
/// late, `delay(50ms,unknown)` another one. `*3` repeats the word three times, `*` for ever. After
/// the last word everything is ok. A plain value.
class FaultScript {
 public:
  /// Empty: all is ok.
  FaultScript() = default;
  /// Throws std::invalid_argument with the column and the reason.
  explicit FaultScript(sluice::detail::TextArg given) {
    const std::string_view text = given;
    std::size_t at = 0;
    while ((at = text.find_first_not_of(" \t\n", at)) != std::string_view::npos) {
      const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
      try {
        add(text.substr(at, end - at));
      } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("fault script, column " + std::to_string(at + 1) + ": " +
                                    error.what());
      }
      at = end;
    }
  }

  /// What happens to the next call.
  Fault next() noexcept {
    if (place_ == parts_.size()) return {};
    const Part& part = parts_[place_];
    if (part.times != for_ever && ++done_ >= part.times) {
      ++place_;
      done_ = 0;
    }
    return part.fault;
  }

  /// True if nothing but ok is left.
  [[nodiscard]] bool is_over() const noexcept { return place_ == parts_.size(); }

 private:
  static constexpr std::uint64_t for_ever = std::numeric_limits<std::uint64_t>::max();
  struct Part {
    Fault fault;
    std::uint64_t times;
  };

  static Fault parse_outcome(std::string_view word) {
    if (word == "ok") return Fault::none();
    if (word == "timeout") return Fault::not_executed();
    if (word == "dropped") return Fault::request_lost();
    if (word.starts_with("delay(") && word.ends_with(')')) return parse_delay(word);
    const auto code = detail::find_errc(word);
    if (!code) {
      detail::expected("ok, timeout, unknown, dropped, delay(50ms) or the name of an Errc", word);
    }
    const std::error_code error = *code;
    return error == Failure::unknown ? Fault::answer_lost(error) : Fault::not_executed(error);
  }

  static Fault parse_delay(std::string_view word) {
    const std::string_view inside = word.substr(6, word.size() - 7);
    const auto comma = inside.find(',');
    const auto span = detail::parse_span(inside.substr(0, comma));
    if (!span || *span > Span{word_limit}) {
      detail::expected("a length of time such as 50ms", inside.substr(0, comma));
    }
    const Fault fault =
        comma == std::string_view::npos ? Fault::none() : parse_outcome(inside.substr(comma + 1));
    if (fault.delay > Span{0}) detail::expected("one delay", word);
    return fault.late(*span);
  }

  void add(std::string_view word) {
    if (!parts_.empty() && parts_.back().times == for_ever) {
      detail::expected("nothing behind what is repeated for ever", word);
    }
    const auto star = word.rfind('*');
    const std::string_view times = star == std::string_view::npos ? "1" : word.substr(star + 1);
    const Fault fault = parse_outcome(word.substr(0, star));
    const auto count = detail::parse_number<std::uint64_t>(times);
    if (!times.empty() && (!count || *count == 0)) {
      detail::expected("a number of times, 1 or more, or nothing behind *", word);
    }
    parts_.push_back({fault, times.empty() ? for_ever : *count});
  }

  std::vector<Part> parts_;
  std::size_t place_ = 0;
  std::uint64_t done_ = 0;  // calls of parts_[place_]
};

}  // namespace sluice::testing
