// libFuzzer: whatever a server sends, the reader says the same however the bytes are split and
// stays within its bounds, and what is read of a reply is valid. Threading: single-threaded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backends/redis/connection/server_version.hpp"
#include "backends/redis/protocol/array_reply.hpp"
#include "backends/redis/protocol/hash_slot.hpp"
#include "backends/redis/protocol/redirection.hpp"
#include "backends/redis/protocol/sentinel_replies.hpp"
#include "backends/redis/topology/cluster_map.hpp"

namespace {

using namespace sluice::redis_detail;
using sluice::RedisAddress;
using State = ArrayReader::State;

void require(bool holds) {
  if (!holds) std::abort();
}

State feed(ArrayReader& reader, std::string_view bytes, std::size_t part) {
  State state = State::incomplete;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size()))) {
    state = reader.feed(bytes.substr(0, part));
  }
  return state;
}

struct Size {
  std::size_t elements = 0;
  std::size_t bytes = 0;
  unsigned depth = 0;
};

void measure(const ReplyValue& value, Size& size, unsigned depth) {
  size.elements += value.elements.size();
  size.bytes += value.text.size();
  if (value.kind == ReplyValue::Kind::array) ++depth;
  size.depth = std::max(size.depth, depth);
  for (const ReplyValue& element : value.elements) measure(element, size, depth);
}

void check(const RedisAddress& address) {
  require(address.host.size() <= 255 && address.port != 0);
  require(std::ranges::all_of(address.host, [](char c) { return c > ' ' && c <= '~'; }));
}

void check(const ClusterMap& map) {
  require(map.error.empty() || map.ranges.empty());
  int last = -1;
  for (const SlotRange& range : map.ranges) {
    require(range.first > last && range.first <= range.last && range.last < hash_slots);
    last = range.last;
    require(!range.master.host.empty());
    check(range.master);
  }
}

void read(const ReplyValue& value) {
  check(read_cluster_map(value, {"asked", 1}));
  const NamedMaster master = read_master(value);
  require(master.address.has_value() == master.error.empty());
  if (master.address) check(*master.address);
  const auto sentinels = read_sentinels(value);
  require(sentinels.size() <= max_sentinels);
  for (const RedisAddress& address : sentinels) check(address);
  const auto role = read_role(value);
  require(role.empty() || role == "master" || role == "slave" || role == "sentinel");
  const Hello hello = read_hello(value);
  static_cast<void>(is_too_old(hello.version));
}

/// Makes a value of bytes: each says what comes next.
class Maker {
 public:
  explicit Maker(std::string_view plan) : plan_(plan) {}

  ReplyValue make(int depth) {
    using Kind = ReplyValue::Kind;
    ReplyValue value{.kind = static_cast<Kind>(next() % 6)};
    if (value.kind == Kind::integer) value.integer = number();
    if (value.kind == Kind::string) value.text = text();
    if (value.kind == Kind::error || value.kind == Kind::status) value.text = text();
    if (value.kind != Kind::array || depth == 0) return value;
    for (auto n = next() % 8; n > 0; --n) value.elements.push_back(make(depth - 1));
    return value;
  }

 private:
  unsigned next() {
    if (plan_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(plan_.front());
    plan_.remove_prefix(1);
    return byte;
  }

  std::int64_t number() {
    const unsigned high = next();
    return std::int64_t{high} * 256 + next() - 1;
  }

  std::string text() {
    static constexpr std::string_view words[] = {
        "master", "ip", "port", "flags", "s_down", "10.0.0.1", "::1", "6379",
        "65536",  "0",  "?",    "",      "server", "version",  "7.0", "role"};
    const unsigned choice = next();
    if (choice < 192) return std::string(words[choice % std::size(words)]);
    const std::string_view bytes = plan_.substr(0, choice - 192);
    plan_.remove_prefix(bytes.size());
    return std::string(bytes);
  }

  std::string_view plan_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  require(hash_slot(bytes) < hash_slots);
  if (const auto redirection = read_redirection(bytes)) check(redirection->node);

  read(Maker(bytes).make(3));

  ArrayReader whole;
  const State state = feed(whole, bytes, std::max<std::size_t>(size, 1));
  for (const std::size_t part : {1U, 7U}) {
    ArrayReader split;
    require(feed(split, bytes, part) == state);
    if (state == State::complete) require(split.value() == whole.value());
  }
  if (state != State::complete) return 0;
  Size measured;
  measure(whole.value(), measured, 0);
  require(measured.elements <= ArrayReader::max_elements);
  require(measured.bytes <= size);
  require(measured.depth <= ArrayReader::max_depth);
  read(whole.value());
  return 0;
}
