// What one decision costs the server: each case is one command, sent by plain hiredis at depth 128
// on hot keys, and the figure is the server's own (INFO commandstats). So the client plays no part.
#include <benchmark/benchmark.h>

#include <ctime>

#include "bench/redis/cases.hpp"
#include "bench/redis/plan_cases.hpp"
#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/gates.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::bench {
namespace {

// The token bucket that most projects start from: tokens and the time of the last refill in a key
// each, whole seconds of the client's clock, both keys written at every request.
constexpr std::string_view two_key_bucket = R"lua(
local bucket_key, clock_key = KEYS[1], KEYS[2]
local per_second, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local second, wanted = tonumber(ARGV[3]), tonumber(ARGV[4])
local keep = math.floor(size / per_second * 2)

local before = tonumber(redis.call('GET', bucket_key))
if before == nil then before = size end
local seen = tonumber(redis.call('GET', clock_key))
if seen == nil then seen = 0 end

local there = math.min(size, before + math.max(0, second - seen) * per_second)
local enough = there >= wanted
local left = there
if enough then left = there - wanted end

redis.call('SETEX', bucket_key, keep, left)
redis.call('SETEX', clock_key, keep, second)
return {enough, left}
)lua";

// The slot lock of most projects, in a script so that the server counts it alike: a key that
// expires, and how long it still lives.
constexpr std::string_view expiring_key = R"lua(
if redis.call('SET', KEYS[1], 'locked', 'PX', ARGV[1], 'NX') then return -1 end
return redis.call('PTTL', KEYS[1])
)lua";

// The fixed window of most projects: a counter that the first request gives a life time.
constexpr std::string_view expiring_counter = R"lua(
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
if count > tonumber(ARGV[1]) then return 0 end
return 1
)lua";

void spend_all(const TokenBucket& bucket, const Key& key) {
  static_cast<void>(bucket.try_acquire(key, bucket.quota().capacity()));
}

/// Slot locks, gates and fixed windows, beside what they are usually made of.
void add_pacing_cases(Rig& rig, Cases& cases) {
  cases.add_script("SET NX PX refused, PTTL", expiring_key, {"{slot}:key"}, {"86400000"});
  const SlotLock quick(rig.store(), "quick", Span{1});
  const SlotLock slow(rig.store(), "slow", std::chrono::hours{24});
  (void)slow.try_acquire("alice");
  cases.add_plan("slot lock reserve", {quick.acquire_step("alice", SlotLock::max_horizon)},
                 Verdict::allowed);
  cases.add_plan("slot lock refuse", {slow.acquire_step("alice")}, Verdict::refused);

  const Gates gates(rig.store(), "gates", {"account", "token"});
  const Scope open = gates.scope("account", "open");
  const Scope shut = gates.scope("account", "shut");
  const Scope other = gates.scope("token", "open");
  gates.close(shut, std::chrono::hours{24});
  cases.add_plan("gate open", {gates.pass_step(open)}, Verdict::allowed);
  cases.add_plan("gate shut", {gates.pass_step(shut)}, Verdict::refused);
  cases.add_plan("two gates open", {gates.pass_step(open), gates.pass_step(other)},
                 Verdict::allowed);

  cases.add_script("expiring counter allow", expiring_counter, {"{counter}:plenty"},
                   {"1000000000", "86400"});
  cases.add_script("expiring counter refuse", expiring_counter, {"{counter}:spent"},
                   {"1", "86400"});
  const Calendar age = Calendar::every(Calendar::max_width);
  const FixedWindow plenty(rig.store(), "plenty", 1'000'000'000, age);
  const FixedWindow spent(rig.store(), "spent", 1, age);
  const FixedWindow daily(rig.store(), "daily", 1'000'000'000, Calendar::daily());
  (void)spent.try_acquire("window");
  cases.add_plan("fixed window allow", {plenty.acquire_step("window")}, Verdict::allowed);
  cases.add_plan("fixed window refuse", {spent.acquire_step("window")}, Verdict::refused);
  cases.add_plan("calendar window allow", {daily.acquire_step("window")}, Verdict::allowed);

  rig.note_bytes("slot lock", rig.memory_usage("{alice}:slow"));
  rig.note_bytes("gate", rig.memory_usage(render(shut.key())));
  rig.note_bytes("fixed window", rig.memory_usage(render(daily.acquire_step("window").key)));
}

}  // namespace

std::vector<Comparison> register_server_cases(Rig& rig) {
  Cases cases(rig);
  cases.add_script("EVALSHA return 0", "return 0", {}, {});
  cases.add_script("EVALSHA return 0, 1 key 3 args", "return 0", {"{floor}:a"}, {"1", "2", "3"});
  // What no script that reads one key under the server's clock can undercut.
  cases.add_script("EVALSHA of GET and TIME",
                   "redis.call('GET', KEYS[1]) return redis.call('TIME')[1]", {"{floor}:a"},
                   {"1", "2"});

  // A second that stands still refills nothing: the large bucket admits every request of a run,
  // the small one refuses all but the first.
  const std::string second = std::to_string(std::time(nullptr));
  cases.add_script("two-key bucket allow", two_key_bucket, {"{a}.tokens", "{a}.timestamp"},
                   {"1000000", "5000000", second, "1"});
  cases.add_script("two-key bucket refuse", two_key_bucket, {"{r}.tokens", "{r}.timestamp"},
                   {"1", "60", second, "60"});

  // A rate with a fraction, fast enough to admit all; and one token a day.
  const TokenBucket plenty(rig.store(), "plenty", Quota::per_minute(60'000'007).burst(10'000'000));
  const TokenBucket spent(rig.store(), "spent", Quota::per_day(1));
  spend_all(spent, "alice");
  cases.add_plan("acquire allow", {plenty.acquire_step("alice")}, Verdict::allowed);
  cases.add_plan("acquire refuse", {spent.acquire_step("alice")}, Verdict::refused);
  cases.add_plan("peek", {plenty.peek_step("alice")}, Verdict::allowed);
  const std::vector<Step> three{plenty.acquire_step("alice"),
                                plenty.acquire_step(Key{"alice", "account"}),
                                plenty.acquire_step(Key{"alice", "everyone"})};
  cases.add_plan("plan of 3 allow", three, Verdict::allowed);
  cases.add_function("function: acquire allow", {plenty.acquire_step("alice")}, Verdict::allowed);
  cases.add_function("function: acquire refuse", {spent.acquire_step("alice")}, Verdict::refused);
  cases.add_function("function: plan of 3 allow", three, Verdict::allowed);

  add_pacing_cases(rig, cases);

  rig.note_bytes("two-key bucket",
                 rig.memory_usage("{a}.tokens") + rig.memory_usage("{a}.timestamp"));
  rig.note_bytes("token bucket", rig.memory_usage(render(plenty.acquire_step("alice").key)));

  const char* const us = "server us";
  return {{us, "acquire allow", "two-key bucket allow"},
          {us, "acquire refuse", "two-key bucket refuse"},
          {us, "plan of 3 allow", "acquire allow"},
          {us, "function: acquire allow", "two-key bucket allow"},
          {us, "function: acquire refuse", "two-key bucket refuse"},
          {us, "function: acquire allow", "acquire allow"},
          {us, "function: acquire refuse", "acquire refuse"},
          {us, "function: plan of 3 allow", "plan of 3 allow"},
          {us, "peek", "acquire allow"},
          {us, "acquire allow", "EVALSHA return 0, 1 key 3 args"},
          {us, "acquire refuse", "EVALSHA return 0, 1 key 3 args"},
          {us, "EVALSHA return 0, 1 key 3 args", "EVALSHA return 0"},
          {us, "EVALSHA of GET and TIME", "two-key bucket refuse"},
          {us, "slot lock reserve", "SET NX PX refused, PTTL"},
          {us, "slot lock refuse", "SET NX PX refused, PTTL"},
          {us, "gate open", "EVALSHA of GET and TIME"},
          {us, "fixed window allow", "expiring counter allow"},
          {us, "fixed window refuse", "expiring counter refuse"},
          {"bytes", "token bucket", "two-key bucket"}};
}

}  // namespace sluice::bench
