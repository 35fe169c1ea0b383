// What a place that is taken and given back costs the server, beside the sorted set that most
// projects start from. One cycle of commands is one decision; the figure is the server's own.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

#include "bench/redis/cases.hpp"
#include "sluice/concurrency_limiter.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t depth = 64;  // cycles in flight
constexpr std::size_t cycles = 32 * depth;
constexpr Word limit = 100;
constexpr Word held = 50;

// Ids in a sorted set by the time they were taken, in the client's time: the expired are swept by a
// command before, the count and the addition are one script, giving back is a command after.
constexpr std::string_view sorted_set = R"lua(
local members, most = KEYS[1], tonumber(ARGV[1])
local taken = redis.call('ZCARD', members)
local fits = taken < most
if fits then redis.call('ZADD', members, ARGV[2], ARGV[3]) end
return {fits, taken}
)lua";

/// Sends the commands one after the other, again and again.
void add(Rig& rig, const std::string& name, std::shared_ptr<std::vector<Command>> commands) {
  const auto run = [&rig, name, commands](benchmark::State& state) {
    Round round(rig);
    while (state.KeepRunningBatch(depth)) rig.raw().cycle(*commands, depth);
    const auto done = static_cast<std::size_t>(state.iterations());
    const Sample sample = round.finish_cycles(name, done);
    state.counters["server_us"] = sample.server_us;
    state.SetIterationTime(sample.server_us * 1e-6 * static_cast<double>(done));
  };
  rig.raw().cycle(*commands, 1);
  benchmark::RegisterBenchmark(("redis/server/" + name).c_str(), run)
      ->Iterations(cycles)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

template <class... Commands>
std::shared_ptr<std::vector<Command>> list(Commands... commands) {
  auto made = std::make_shared<std::vector<Command>>();
  (made->push_back(std::move(commands)), ...);
  return made;
}

/// `stamp`: how the client writes the time. Fifty are held.
void add_sorted_set(Rig& rig, const std::string& name, const std::string& key,
                    const std::string& stamp, const std::string& swept) {
  for (Word i = 0; i < held; ++i) {
    const std::string id = std::to_string(0xabc0000 + i);
    rig.raw().pipeline(rig.script(sorted_set, {key}, {"100", stamp, id}), 1);
  }
  add(rig, name,
      list(Command({"ZREMRANGEBYSCORE", key, "-inf", swept}),
           rig.script(sorted_set, {key}, {"100", stamp, "5f1ab2c3"}),
           Command({"ZREM", key, "5f1ab2c3"})));
  rig.ledger().set_bytes(name, rig.memory_usage(key));
}

/// A request by the place that a limiter's own call would name.
Step placed(Step step, std::size_t argument, Word value) {
  step.args[argument] = value;
  return step;
}

}  // namespace

std::vector<Claim> register_lease_cases(Rig& rig) {
  using namespace std::chrono;
  const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  const auto fine = [](auto us) {
    std::string text = std::to_string(us);
    return text.insert(text.size() - 6, ".");
  };
  add_sorted_set(rig, "sorted set cycle, whole seconds", "seconds", std::to_string(now / 1'000'000),
                 std::to_string(now / 1'000'000 - 60));
  add_sorted_set(rig, "sorted set cycle, microseconds", "micros", fine(now),
                 fine(now - 60'000'000));

  const ConcurrencyLimiter jobs(rig.store(), "jobs", limit, {.ttl = hours{1}});
  const Key key("alice");
  for (Word i = 0; i < held; ++i) {
    const LeaseId id{0xabc0000, static_cast<std::uint64_t>(i)};
    rig.raw().pipeline(rig.request(std::array{jobs.take(key, id)}), 1);
  }
  const LeaseId id{0x5f1ab2c3, 0x5f1ab2c3};
  const Step take = placed(jobs.take(key, id), 4, 0);
  const Step give_back = placed(jobs.give_back(key, id), 1, held + 1);
  add(rig, "lease cycle", list(rig.request({&take, 1}), rig.request({&give_back, 1})));
  rig.ledger().set_bytes("lease cycle", rig.memory_usage("{alice}:jobs"));

  constexpr auto us = Figure::server_us;
  return {{us, "lease cycle", "sorted set cycle, microseconds", 0.50, 0.35},
          {us, "lease cycle", "sorted set cycle, whole seconds"},
          {Figure::bytes, "lease cycle", "sorted set cycle, microseconds"}};
}

}  // namespace sluice::bench
