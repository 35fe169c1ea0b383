#include "backends/redis/topology/cluster_map.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "backends/redis/protocol/hash_slot.hpp"
#include "backends/redis/protocol/node_address.hpp"
#include "src/util/quoted.hpp"

namespace sluice::redis_detail {
namespace {

using Kind = ReplyValue::Kind;
using detail::quoted;

ClusterMap no_map(const std::string& why) { return {.error = "CLUSTER SLOTS: " + why}; }

std::string text_of(const SlotRange& range) {
  return std::to_string(range.first) + " to " + std::to_string(range.last);
}

/// Reads the rows one by one, each an array of first slot, last slot, master, replicas.
class RowReader {
 public:
  explicit RowReader(const RedisAddress& asked) : asked_(asked) {}

  /// None if the row is wrong, and `error` says why, or if it is to be left out.
  std::optional<SlotRange> read(const ReplyValue& row, std::string& error) {
    std::optional<SlotRange> range;
    if (row.kind != Kind::array || row.elements.size() < 3) {
      error = "a row must be an array of two slots and a master";
    } else {
      range = read_slots(row.elements[0], row.elements[1], error);
    }
    if (range && !read_master(row.elements[2], range->master, error)) return std::nullopt;
    return range;
  }

 private:
  static std::optional<SlotRange> read_slots(const ReplyValue& first, const ReplyValue& last,
                                             std::string& error) {
    constexpr auto slots = std::int64_t{hash_slots};
    for (const ReplyValue* slot : {&first, &last}) {
      if (slot->kind != Kind::integer) {
        error = "a slot must be an integer";
        return std::nullopt;
      }
      if (slot->integer < 0 || slot->integer >= slots) {
        error = "a slot must be 0 to 16383, got " + std::to_string(slot->integer);
        return std::nullopt;
      }
    }
    const SlotRange range{static_cast<std::uint16_t>(first.integer),
                          static_cast<std::uint16_t>(last.integer)};
    if (range.first <= range.last) return range;
    error = "the slots " + text_of(range) + " are no range";
    return std::nullopt;
  }

  /// False if the node is wrong or unknown.
  bool read_master(const ReplyValue& node, RedisAddress& master, std::string& error) const {
    if (node.kind != Kind::array || node.elements.size() < 2) {
      error = "a node must be an array of a host and a port";
      return false;
    }
    const ReplyValue& host = node.elements[0];
    const ReplyValue& port = node.elements[1];
    if (host.kind != Kind::null && host.kind != Kind::string) {
      error = "a host must be a string or null";
      return false;
    }
    if (host.text == "?") return false;
    if (!host.text.empty() && !is_host(host.text)) {
      error = "the host " + quoted(host.text) + " is no name";
      return false;
    }
    if (port.kind != Kind::integer || port.integer < 1 || port.integer > 65'535) {
      error = "a port must be 1 to 65535, got " +
              (port.kind == Kind::integer ? std::to_string(port.integer) : "no integer");
      return false;
    }
    master.host = host.text.empty() ? asked_.host : host.text;
    master.port = static_cast<std::uint16_t>(port.integer);
    return true;
  }

  const RedisAddress& asked_;
};

bool has_too_many_masters(const std::vector<SlotRange>& ranges) {
  std::set<std::pair<std::string_view, std::uint16_t>> masters;
  for (const SlotRange& range : ranges) masters.emplace(range.master.host, range.master.port);
  return masters.size() > max_masters;
}

}  // namespace

ClusterMap read_cluster_map(const ReplyValue& slots, const RedisAddress& asked) {
  if (slots.kind == Kind::error) return {.error = text_of_error(slots)};
  if (slots.kind != Kind::array) return no_map("the reply is no array");
  if (slots.elements.size() > hash_slots) {
    return no_map("the reply must have at most 16384 rows, got " +
                  std::to_string(slots.elements.size()));
  }
  ClusterMap map;
  RowReader reader(asked);
  for (const ReplyValue& row : slots.elements) {
    std::string error;
    auto range = reader.read(row, error);
    if (!error.empty()) return no_map(error);
    if (range) map.ranges.push_back(std::move(*range));
  }
  std::ranges::sort(map.ranges, {}, &SlotRange::first);
  const auto overlap = std::ranges::adjacent_find(
      map.ranges,
      [](const SlotRange& left, const SlotRange& right) { return left.last >= right.first; });
  if (overlap != map.ranges.end()) {
    return no_map("the slots " + text_of(overlap[0]) + " and " + text_of(overlap[1]) + " overlap");
  }
  if (has_too_many_masters(map.ranges)) return no_map("the reply has more than 1024 masters");
  return map;
}

}  // namespace sluice::redis_detail
