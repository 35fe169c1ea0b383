// What a link tells of its server and of its calls.
#include "backends/redis/connection/link.hpp"
#include "backends/redis/protocol/info_reply.hpp"

namespace sluice::redis_detail {
namespace {

/// Between two INFO, whose texts the server takes some time to write.
constexpr Span least_between_infos = std::chrono::seconds{1};

constexpr std::size_t longest_policy = 64;

}  // namespace

RedisReplyTimes reply_times_of(const LatencyCounts& times) noexcept {
  return {times.total(), times.quantile(1, 2), times.quantile(99, 100)};
}

void Link::note_server() {
  const std::lock_guard lock(health_mutex_);
  health_ = {};
  health_.address = connection_.address();
  health_.role = connection_.server().role;
  health_.version = connection_.server().version;
  informed_ = Time{};
}

void Link::note_info() {
  const std::string text = pipeline_.take_info();
  if (text.empty()) return;
  const InfoReply info = read_info(text);
  const std::lock_guard lock(health_mutex_);
  health_.maxmemory_policy = presentable(info.maxmemory_policy.substr(0, longest_policy));
  health_.evicted_keys = info.evicted_keys;
}

void Link::refresh_health() noexcept {
  const std::lock_guard wire(wire_);
  const Time now = context_.clock.now();
  if (!connected_ || draining_ || now - informed_ < least_between_infos) return;
  informed_ = now;
  pipeline_.ask_info();
}

RedisNodeHealth Link::health() const {
  const std::lock_guard lock(health_mutex_);
  RedisNodeHealth health = health_;
  health.connected = is_connected();
  return health;
}

RedisNodeStats Link::stats() const {
  RedisNodeStats stats;
  stats.address = health().address;
  stats.connected = is_connected();
  {
    const std::lock_guard wire(wire_);
    stats.in_flight = pipeline_.sent_count();
  }
  stats.decided = counters().decided.load();
  stats.not_executed = counters().not_executed.load();
  stats.unknown = counters().unknown.load();
  stats.connections = connections();
  stats.redirections = redirections();
  LatencyCounts times;
  latencies_.add_to(times, context_.clock.now());
  stats.reply_times = reply_times_of(times);
  return stats;
}

}  // namespace sluice::redis_detail
