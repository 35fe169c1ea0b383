// FaultScript: the faults of successive calls to a FaultyStore, as values or as text.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/detail/text_arg.hpp"
#include "sluice/error.hpp"
#include "sluice/testing/detail/cursor.hpp"
#include "sluice/testing/detail/error_names.hpp"
#include "sluice/time.hpp"

namespace sluice::testing {

/// The fault of one call.
struct Fault {
  std::error_code error{};  ///< the caller's error; none: the true answer
  bool executed = true;     ///< whether the inner store executes the call
  Span delay{0};            ///< the delay of the answer, by the store's clock

  /// No fault.
  [[nodiscard]] static Fault none() noexcept { return {}; }
  /// The call fails with `error`, and is not executed.
  [[nodiscard]] static Fault not_executed(std::error_code error = Errc::timed_out) noexcept {
    return {error, false, Span{0}};
  }
  /// The call is executed, and its answer is lost.
  [[nodiscard]] static Fault answer_lost(std::error_code error = Errc::unknown) noexcept {
    return {error, true, Span{0}};
  }
  /// The request is lost: the call is not executed, and the caller cannot know.
  [[nodiscard]] static Fault request_lost() noexcept { return {Errc::unknown, false, Span{0}}; }
  /// The same fault with the answer `span` later.
  [[nodiscard]] Fault late(Span span) const noexcept {
    Fault fault = *this;
    fault.delay = span;
    return fault;
  }

  [[nodiscard]] bool is_fault() const noexcept { return error || delay > Span{0}; }
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// A list of faults for successive calls:
///
///     FaultScript script("ok ok timeout unknown ok*3 delay(50ms)");
///
/// The words are `ok`; the name of an Errc, such as `not_connected`: the call is not executed,
/// except after `unknown`, `server_error` and `protocol_error`, where it is executed and the answer
/// is lost; `timeout` for `timed_out`; `dropped`: Errc::unknown, and the request never arrived;
/// `delay(50ms)`: the true answer 50 ms late; `delay(50ms,unknown)`: another answer that late. `*3`
/// repeats a word three times, `*` for ever. After the last word there are no faults. A plain
/// value.
class FaultScript {
 public:
  /// An empty script: no faults.
  FaultScript() = default;
  /// Parses a script. Throws std::invalid_argument with the column and the reason.
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

  /// The fault of the next call.
  Fault next() noexcept {
    if (place_ == parts_.size()) return {};
    const Part& part = parts_[place_];
    if (part.times != for_ever && ++done_ >= part.times) {
      ++place_;
      done_ = 0;
    }
    return part.fault;
  }

  /// True if no faults are left.
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
