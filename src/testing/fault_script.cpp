// FaultScript: its words, and the fault of each call.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "sluice/testing/faulty_store.hpp"
#include "src/core/error_names.hpp"
#include "src/testing/cursor.hpp"

namespace sluice::testing {
namespace {

constexpr std::uint64_t for_ever = std::numeric_limits<std::uint64_t>::max();

Fault parse_outcome(std::string_view word);

Fault parse_delay(std::string_view word) {
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

Fault parse_outcome(std::string_view word) {
  if (word == "ok") return Fault::none();
  if (word == "timeout") return Fault::not_executed();
  if (word == "dropped") return Fault::request_lost();
  if (word.starts_with("delay(") && word.ends_with(')')) return parse_delay(word);
  const auto code = sluice::detail::find_errc(word);
  if (!code) {
    detail::expected("ok, timeout, unknown, dropped, delay(50ms) or the name of an Errc", word);
  }
  const std::error_code error = *code;
  return error == Failure::unknown ? Fault::answer_lost(error) : Fault::not_executed(error);
}

}  // namespace

FaultScript::FaultScript(sluice::detail::TextArg given) {
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

Fault FaultScript::next() noexcept {
  if (place_ == parts_.size()) return {};
  const Part& part = parts_[place_];
  if (part.times != for_ever && ++done_ >= part.times) {
    ++place_;
    done_ = 0;
  }
  return part.fault;
}

void FaultScript::add(std::string_view word) {
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

}  // namespace sluice::testing
