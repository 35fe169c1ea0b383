#include "backends/redis/protocol/sentinel_replies.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>
#include <utility>

#include "backends/redis/protocol/node_address.hpp"
#include "src/util/quoted.hpp"

namespace sluice::redis_detail {
namespace {

using Kind = ReplyValue::Kind;
using detail::quoted;

/// The value of a field in a flat array of fields and values; empty if it is not there.
std::string_view field_of(const ReplyValue& row, std::string_view name) noexcept {
  for (std::size_t i = 0; i + 1 < row.elements.size(); i += 2) {
    if (row.elements[i].text == name) return row.elements[i + 1].text;
  }
  return {};
}

std::optional<RedisAddress> read_sentinel(const ReplyValue& row) {
  const std::string_view host = field_of(row, "ip");
  const auto port = read_port(field_of(row, "port"));
  if (!is_host(host) || !port) return std::nullopt;
  return RedisAddress{std::string(host), *port};
}

/// `flags` is a list as in "s_down,sentinel,disconnected".
bool is_down(std::string_view flags) noexcept {
  constexpr std::string_view names[] = {"s_down", "o_down", "disconnected"};
  return std::ranges::any_of(
      names, [&](std::string_view name) { return flags.find(name) != std::string_view::npos; });
}

}  // namespace

NamedMaster read_master(const ReplyValue& reply) {
  if (reply.kind == Kind::error) return {.error = text_of_error(reply)};
  if (reply.kind == Kind::null) return {.error = "the Sentinel knows no master of this name"};
  const auto is_string = [](const ReplyValue& value) { return value.kind == Kind::string; };
  if (reply.elements.size() != 2 || !std::ranges::all_of(reply.elements, is_string)) {
    return {.error = "the Sentinel's reply is no array of a host and a port"};
  }
  const std::string& host = reply.elements[0].text;
  const std::string& port = reply.elements[1].text;
  if (!is_host(host)) return {.error = "the Sentinel's host " + quoted(host) + " is no name"};
  const auto number = read_port(port);
  if (!number) {
    return {.error = "the Sentinel's port must be 1 to 65535, got " + quoted(port)};
  }
  return {.address = RedisAddress{host, *number}};
}

std::uint64_t read_epoch(const ReplyValue& reply) noexcept {
  const std::string_view digits = field_of(reply, "config-epoch");
  std::uint64_t epoch = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), epoch);
  return epoch;
}

const Vote* newest(const std::vector<Vote>& votes, const RedisAddress& in_use) {
  const auto weight = [&](const Vote& vote) {
    const auto alike = std::ranges::count_if(votes, [&](const Vote& each) {
      return each.epoch == vote.epoch && each.master == vote.master;
    });
    return std::tuple(vote.epoch, alike, vote.master != in_use);
  };
  const auto found = std::ranges::max_element(votes, {}, weight);
  return found == votes.end() ? nullptr : &*found;
}

std::vector<RedisAddress> read_sentinels(const ReplyValue& reply) {
  std::vector<RedisAddress> up;
  std::vector<RedisAddress> down;
  for (const ReplyValue& row : reply.elements) {
    auto address = read_sentinel(row);
    if (!address) continue;
    auto& list = is_down(field_of(row, "flags")) ? down : up;
    if (list.size() < max_sentinels) list.push_back(std::move(*address));
  }
  down.resize(std::min(down.size(), max_sentinels - up.size()));
  std::ranges::move(down, std::back_inserter(up));
  return up;
}

std::string_view read_role(const ReplyValue& reply) noexcept {
  if (reply.elements.empty()) return {};
  const std::string_view role = reply.elements.front().text;
  return role == "master" || role == "slave" || role == "sentinel" ? role : std::string_view();
}

}  // namespace sluice::redis_detail
