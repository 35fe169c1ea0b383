// See log_coverage.hpp. Everything is counted over the log's requests, which are in the order of
// their stamps.
#include "sim/log/log_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "cli/text.hpp"

namespace sluice::tool {
namespace {

constexpr std::int64_t shortest_gap = 600;  // seconds
// Fewer of them may look regular by chance.
constexpr std::size_t fewest_periods = 10;
constexpr std::size_t fewest_stamps = 10;
constexpr std::size_t fewest_isolated = 3;
constexpr std::size_t fewest_clients = 5;
constexpr std::array<std::int64_t, 9> periods{1'440, 60, 30, 20, 15, 12, 10, 6, 5};  // minutes

std::int64_t seconds_between(const LogRequest& a, const LogRequest& b) {
  return b.second - a.second;
}

/// The longest silence that the traffic of `log` explains, in seconds.
double explained_silence(const AccessLog& log) {
  const auto requests = static_cast<double>(log.requests.size());
  const auto length =
      static_cast<double>(seconds_between(log.requests.front(), log.requests.back()));
  return std::max<double>(shortest_gap, 10 * length / requests * (1 + std::log(requests)));
}

Gaps gaps_of(const AccessLog& log) {
  Gaps gaps;
  const double explained = explained_silence(log);
  for (std::size_t i = 1; i < log.requests.size(); ++i) {
    const std::int64_t silence = seconds_between(log.requests[i - 1], log.requests[i]);
    if (static_cast<double>(silence) <= explained) continue;
    ++gaps.count;
    gaps.total += silence;
    if (silence > gaps.longest) {
      gaps.longest = silence;
      gaps.start = log.requests[i - 1].second;
    }
  }
  return gaps;
}

/// A minute of the clock with its requests.
struct Minute {
  std::int64_t number;  ///< since 1970, by the log's own UTC offset
  std::uint64_t requests = 0;
  std::unordered_set<std::uint32_t> clients;
};

std::vector<Minute> minutes_of(const AccessLog& log) {
  std::vector<Minute> minutes;
  for (const LogRequest& request : log.requests) {
    const std::int64_t local = request.second + log.utc_offset;
    const std::int64_t number = (local - ((local % 60) + 60) % 60) / 60;
    if (minutes.empty() || minutes.back().number != number) minutes.push_back({number, 0, {}});
    ++minutes.back().requests;
    if (minutes.back().clients.size() < fewest_clients) {
      minutes.back().clients.insert(request.client);
    }
  }
  return minutes;
}

/// The minute of each `period` in which most requests lie, if it is nearly all of them.
Sampling sampling_by(std::int64_t period, const std::vector<Minute>& minutes,
                     std::uint64_t requests) {
  std::vector<std::uint64_t> requests_in(static_cast<std::size_t>(period));
  std::vector<std::size_t> periods_with(static_cast<std::size_t>(period));
  for (const Minute& minute : minutes) {
    const auto place = static_cast<std::size_t>((minute.number % period + period) % period);
    requests_in[place] += minute.requests;
    ++periods_with[place];
  }
  const auto most = std::max_element(requests_in.begin(), requests_in.end());
  const auto place = static_cast<std::size_t>(most - requests_in.begin());
  if (*most * 20 < requests * 19 || periods_with[place] < fewest_periods) return {};
  return {period, static_cast<std::int64_t>(place), *most};
}

Sampling sampling_of(const std::vector<Minute>& minutes, std::uint64_t requests) {
  for (const std::int64_t period : periods) {
    const Sampling sampling = sampling_by(period, minutes, requests);
    if (sampling.period != 0) return sampling;
  }
  return {};
}

IsolatedMinutes isolated_of(const std::vector<Minute>& minutes, std::uint64_t requests) {
  IsolatedMinutes isolated;
  for (std::size_t i = 0; i < minutes.size(); ++i) {
    const bool after_silence = i == 0 || minutes[i - 1].number + 1 < minutes[i].number;
    const bool before_silence =
        i + 1 == minutes.size() || minutes[i].number + 1 < minutes[i + 1].number;
    if (!after_silence || !before_silence || minutes[i].clients.size() < fewest_clients) continue;
    ++isolated.count;
    isolated.requests += minutes[i].requests;
  }
  const bool chance = isolated.count < fewest_isolated || isolated.requests * 10 < requests;
  return chance ? IsolatedMinutes{} : isolated;
}

std::int64_t stamp_step_of(const AccessLog& log) {
  std::int64_t step = 0;
  std::size_t stamps = 1;
  for (std::size_t i = 1; i < log.requests.size() && step != 1; ++i) {
    const std::int64_t apart = seconds_between(log.requests[i - 1], log.requests[i]);
    if (apart > 0) ++stamps;
    step = std::gcd(step, apart);
  }
  return stamps < fewest_stamps ? 1 : step;
}

Span seconds(std::int64_t count) { return Span{count * 1'000'000}; }

/// "minute 5 of every hour"
std::string minute_of(const Sampling& sampling) {
  switch (sampling.period) {
    case 1'440:
      return fmt::format("the minute {:02}:{:02} of every day", sampling.minute / 60,
                         sampling.minute % 60);
    case 60:
      return fmt::format("minute {:02} of every hour", sampling.minute);
    default:
      return fmt::format("one minute of every {}", sampling.period);
  }
}

}  // namespace

LogCoverage coverage_of(const AccessLog& log) {
  if (log.requests.empty()) return {};
  const std::vector<Minute> minutes = minutes_of(log);
  LogCoverage coverage;
  coverage.gaps = gaps_of(log);
  coverage.sampling = sampling_of(minutes, log.requests.size());
  coverage.isolated = isolated_of(minutes, log.requests.size());
  coverage.stamp_step = stamp_step_of(log);
  return coverage;
}

std::string coverage_text(const AccessLog& log) {
  const LogCoverage coverage = coverage_of(log);
  if (coverage.complete()) return {};
  const std::uint64_t all = log.requests.size();
  std::string text = "this log may not tell what a quota does to live traffic.\n";
  if (const Gaps& gaps = coverage.gaps; gaps.count > 0) {
    text += fmt::format("  gaps              {}, {} in all; the longest has {} from {} on\n",
                        plural(gaps.count, "silence"), duration(seconds(gaps.total)),
                        duration(seconds(gaps.longest)), moment(gaps.start, log.utc_offset, true));
  }
  if (const Sampling& sampling = coverage.sampling; sampling.period > 0) {
    text += fmt::format("  sampling          {} of the requests lie in {}\n",
                        percent(sampling.requests, all), minute_of(sampling));
  }
  if (const IsolatedMinutes& isolated = coverage.isolated; isolated.count > 0) {
    text += fmt::format(
        "  whole minutes     {} ({}) come in {} with a silent minute before and after\n",
        plural(isolated.requests, "request"), percent(isolated.requests, all),
        plural(isolated.count, "minute"));
  }
  if (coverage.stamp_step > 1) {
    text += fmt::format(
        "  coarse stamps     all are apart by multiples of {}; what came between is taken for\n"
        "                    simultaneous\n",
        duration(seconds(coverage.stamp_step)));
  }
  return text +
         "If requests are missing, more would be refused than the figures below say; if they were\n"
         "stamped closer together than they came, fewer.\n";
}

}  // namespace sluice::tool
