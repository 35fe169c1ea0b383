// libFuzzer: whatever a server sends, the reader never breaks on what the guard lets through, never
// piles up, and says the same however the stream is split. Threading: single-threaded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backends/redis/protocol/reply_reader.hpp"

namespace {

using sluice::redis_detail::ReplyReader;
using sluice::redis_detail::ServerReply;

/// Everything that is heard of `bytes` when they come in parts of `part` bytes.
std::string hear(std::string_view bytes, std::size_t part) {
  ReplyReader reader;
  reader.reset();
  std::string heard;
  bool sound = true;
  while (sound && !bytes.empty()) {
    sound = reader.feed(bytes.substr(0, part));
    bytes.remove_prefix(std::min(part, bytes.size()));
    for (;;) {
      const ServerReply reply = reader.next();
      if (reply.kind == ServerReply::Kind::none) break;
      if (reply.kind == ServerReply::Kind::broken) std::abort();
      heard += static_cast<char>(reply.kind);
      heard += reply.text;
      heard += '\n';
    }
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
