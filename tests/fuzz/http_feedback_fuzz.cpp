// libFuzzer: whatever headers a server sends, reading them stays within the bounds of a Feedback.
// The input is lines: one byte that stands for a known name, or `!name:`, and a value. Threading:
// single-threaded.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/http/feedback_checks.hpp"

using namespace sluice;
using namespace sluice::http;

namespace {

Header header_of(std::string_view line) {
  if (line.empty()) return {};
  const auto first = static_cast<unsigned char>(line.front());
  line.remove_prefix(1);
  if (first != '!') return {known_names[first % known_names.size()], line};
  const std::size_t colon = std::min(line.find(':'), line.size());
  return {line.substr(0, colon), line.substr(std::min(colon + 1, line.size()))};
}

std::vector<Header> headers_of(std::string_view bytes) {
  std::vector<Header> headers;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    headers.push_back(header_of(line));
  }
  return headers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<Header> headers = headers_of(bytes);
  constexpr Span longest = std::chrono::hours{24};
  constexpr Time now = to_time(1'709'210'096'000'000);
  if (!is_sound(parse_feedback(headers, now), headers.size(), longest)) std::abort();
  return 0;
}
