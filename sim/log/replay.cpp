// See replay.hpp.
#include "sim/log/replay.hpp"

#include <algorithm>
#include <stdexcept>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::tool {
namespace {

constexpr std::size_t progress_every = 8'192;

Time time_of(const LogRequest& request) { return to_time(request.second * 1'000'000); }

}  // namespace

NamedQuota parse_named_quota(std::string_view text, Word burst) {
  const Quota quota = Quota::parse(text);
  if (quota.is_never() || quota.is_unlimited()) {
    throw std::invalid_argument("a quota to try must be a rate, got " + to_string(quota));
  }
  const std::size_t colon = text.find(':');
  const bool names_burst = colon != std::string_view::npos;
  return {std::string(text.substr(0, colon)),
          names_burst || burst == 0 ? quota : quota.burst(burst)};
}

ReplayResult replay(const AccessLog& log, const Quota& quota,
                    const std::function<void(std::uint64_t)>& progress) {
  ReplayResult result;
  result.refused_of.resize(log.clients.size());
  VirtualClock clock(log.requests.empty() ? VirtualClock::default_start
                                          : time_of(log.requests.front()));
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket(*store, "log", quota);
  std::uint64_t done = 0;
  for (const LogRequest& request : log.requests) {
    clock.set(time_of(request));
    if (bucket.try_acquire(log.clients[request.client])) {
      ++result.admitted;
    } else {
      ++result.refused;
      if (++result.refused_of[request.client] == 1) ++result.clients_refused;
    }
    if (++done % progress_every == 0 && progress) progress(done);
  }
  return result;
}

BusiestMinute busiest_minute(const AccessLog& log) {
  BusiestMinute busiest;
  BusiestMinute current;
  for (const LogRequest& request : log.requests) {
    const std::int64_t start = request.second - request.second % 60;
    if (start != current.start) current = {start, 0};
    ++current.requests;
    if (current.requests > busiest.requests) busiest = current;
  }
  return busiest;
}

std::vector<std::uint64_t> requests_of(const AccessLog& log) {
  std::vector<std::uint64_t> counts(log.clients.size());
  for (const LogRequest& request : log.requests) ++counts[request.client];
  return counts;
}

}  // namespace sluice::tool
