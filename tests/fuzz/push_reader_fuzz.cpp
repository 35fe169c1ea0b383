// libFuzzer: whatever a server pushes, the reader says the same however the stream is split, never
// holds more than one push, and is done with a stream that is not ours. Threading: single-threaded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backends/redis/protocol/push_reader.hpp"

namespace {

using sluice::redis_detail::Push;
using sluice::redis_detail::PushReader;

/// Three parts with their headers, and an error line is shorter.
constexpr std::size_t longest_push = 3 * (PushReader::max_bulk + 1'200);

/// Everything that is heard of `bytes` when they come in parts of `part` bytes.
std::string hear(std::string_view bytes, std::size_t part) {
  PushReader reader;
  std::string heard;
  std::size_t held = 0;
  while (!bytes.empty()) {
    const std::string_view next = bytes.substr(0, part);
    bytes.remove_prefix(next.size());
    reader.feed(next);
    held += next.size();
    for (;;) {
      const Push push = reader.next();
      if (push.kind == Push::Kind::none) break;
      heard += static_cast<char>('a' + static_cast<int>(push.kind));
      if (push.kind == Push::Kind::broken) return heard;
      if (push.channel.size() > longest_push) std::abort();
      heard += push.channel;
      heard += '\n';
      held = 0;
    }
    if (held > longest_push + part) std::abort();
  }
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = hear(bytes, std::max<std::size_t>(size, 1));
  if (hear(bytes, 1) != whole || hear(bytes, 7) != whole) std::abort();
  return 0;
}
