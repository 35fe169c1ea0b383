// What a decision over sliding windows costs the server, beside the two designs most projects start
// from: a sorted set for each window, and a sorted set with a counter and a configuration beside
// it. Both take their time from the client, so that a round can stand for minutes; ours runs on the
// server's clock, under windows as short as the round is fast. All logs are full.
#include <algorithm>
#include <functional>
#include <memory>

#include "bench/redis/cases.hpp"
#include "bench/redis/plan_cases.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"

namespace sluice::bench {
namespace {

// A sorted set for each of two windows, cleared and counted each; a member is the time itself.
constexpr std::string_view two_sets = R"lua(
local at = tonumber(ARGV[1])
local left = {}
for i = 1, 2 do
  local most, seconds = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  redis.call('ZREMRANGEBYSCORE', KEYS[i], 0, at - seconds)
  local count = redis.call('ZCARD', KEYS[i])
  if count < most then redis.call('ZADD', KEYS[i], at, at) end
  redis.call('EXPIRE', KEYS[i], seconds)
  left[i] = most - count
end
return left
)lua";

// The rate in a hash, what is free in a counter, and a sorted set of the permits that are out.
constexpr std::string_view hash_and_set = R"lua(
local rate = redis.call('HGET', KEYS[1], 'rate')
local interval = redis.call('HGET', KEYS[1], 'interval')
local kind = redis.call('HGET', KEYS[1], 'type')
local free_key, out_key = KEYS[2], KEYS[4]
if kind == '1' then free_key, out_key = KEYS[3], KEYS[5] end
local wanted, at = tonumber(ARGV[1]), tonumber(ARGV[2])
if wanted > tonumber(rate) then return redis.error_reply('more than the rate') end

local free = redis.call('GET', free_key)
if not free then
  redis.call('SET', free_key, rate)
  redis.call('ZADD', out_key, at, struct.pack('fI', ARGV[3], wanted))
  redis.call('DECRBY', free_key, wanted)
  return nil
end
local over = redis.call('ZRANGEBYSCORE', out_key, 0, at - interval)
local back = 0
for _, member in ipairs(over) do
  local _, permits = struct.unpack('fI', member)
  back = back + permits
end
if back > 0 then
  redis.call('ZREMRANGEBYSCORE', out_key, 0, at - interval)
  free = tonumber(free) + back
  redis.call('SET', free_key, free)
end
if tonumber(free) < wanted then
  local next = redis.call('ZRANGEBYSCORE', out_key, '(' .. at - interval, '+inf', 'WITHSCORES',
    'LIMIT', 0, 1)
  return next[2] - (at - interval)
end
redis.call('ZADD', out_key, at, struct.pack('fI', ARGV[3], wanted))
redis.call('DECRBY', free_key, wanted)
return nil
)lua";

/// Makes the command of the i-th decision of a case.
using Maker = std::function<Command(std::size_t i)>;

void add(Rig& rig, const std::string& name, Maker make) {
  ServerCase added{.name = name, .commands = {}};
  added.commands = [make = std::move(make), next = std::make_shared<std::size_t>(0),
                    decisions = batches * added.depth] {
    std::vector<Command> commands;
    for (std::size_t i = 0; i < decisions; ++i) commands.push_back(make((*next)++));
    return commands;
  };
  add_server_case(rig, std::move(added));
}

/// Seconds, `ms` milliseconds a decision: at 201, 25 in 5 s and 300 in 60 s hold.
std::string spaced(std::size_t i, std::size_t ms) {
  const std::size_t at = 1'700'000'000'000 + i * ms;
  const std::string rest = std::to_string(at % 1000);
  return std::to_string(at / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

/// The command with the words from `from` on in the place of its own.
Maker with(const Command& command, std::size_t from,
           std::function<std::vector<std::string>(std::size_t)> words) {
  return [base = command.words(), from, words = std::move(words)](std::size_t i) {
    std::vector<std::string> all = base;
    std::ranges::move(words(i), all.begin() + static_cast<std::ptrdiff_t>(from));
    return Command(std::move(all));
  };
}

Maker two_sets_at(Rig& rig, const std::string& key, std::size_t ms) {
  const Command command = rig.script(two_sets, {"{" + key + "}.short", "{" + key + "}.long"},
                                     {"0", "25", "5", "300", "60"});
  return with(command, 5, [ms](std::size_t i) { return std::vector{spaced(i, ms)}; });
}

Maker hash_and_set_at(Rig& rig, const std::string& key, std::size_t ms) {
  const std::string tag = "{" + key + "}";
  rig.command({"HSET", tag, "rate", "300", "interval", "60000", "type", "0"});
  const Command command = rig.script(
      hash_and_set, {tag, tag + ":v", tag + ":v:1", tag + ":p", tag + ":p:1"}, {"1", "0", "0"});
  return with(command, 9, [ms](std::size_t i) {
    return std::vector{std::to_string(1'700'000'000'000 + i * ms), std::to_string(i)};
  });
}

/// Two windows, both spent: 275 units an hour ago, 25 now.
std::string spent_log(Word now) {
  constexpr Word hour = 3'600'000'000;
  const Word ago = now - hour;
  std::vector<Word> words{now, now, 300,       0, 300,       301, now + 24 * hour,
                          0,   2,   24 * hour, 0, 24 * hour, 300};
  words.insert(words.end(), {25, 276, now, 1, now - hour});
  words.insert(words.end(), {300, 1, ago, 1, now - 24 * hour});
  for (int i = 0; i < 300; ++i) words.insert(words.end(), {i < 275 ? ago : now, 1});
  std::string raw(1, static_cast<char>(StateKind::sliding_window));
  for (const Word word : words) {
    for (unsigned i = 0; i < 8; ++i) raw += static_cast<char>(word >> (8 * i) & 255);
  }
  return raw;
}

void fill(const Maker& make, Rig& rig, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) rig.raw().pipeline(make(first + i), 1);
}

}  // namespace

std::vector<Comparison> register_window_cases(Rig& rig) {
  using std::chrono::hours;
  using std::chrono::microseconds;
  static const SlidingWindow both(rig.store(), "both",
                                  {{25, microseconds{75}}, {300, microseconds{900}}});
  static const SlidingWindow one(rig.store(), "one", {{300, microseconds{900}}});
  static const SlidingWindow spent(rig.store(), "spent windows",
                                   {{25, hours{1}}, {300, hours{24}}});
  static const SlidingWindow one_spent(rig.store(), "one spent", {{300, hours{24}}});
  static const SlidingWindowCounter counter(rig.store(), "counter", {1'000'000'000, hours{24}});
  static_cast<void>(one_spent.try_acquire("w", 300));
  const Word now = to_word(rig.store().clock().now());
  rig.command({"SET", render(spent.acquire_step("w").key), spent_log(now), "PX", "86400000"});

  add(rig, "two windows, two sets, allow", two_sets_at(rig, "wa", 201));
  const Maker full = two_sets_at(rig, "wr", 0);
  rig.raw().pipeline(rig.script(R"lua(
    for i = 1, 300 do redis.call('ZADD', KEYS[2], 1699999950, 'm' .. i) end
    for i = 1, 25 do redis.call('ZADD', KEYS[1], 1699999999, 'm' .. i) end)lua",
                                {"{wr}.short", "{wr}.long"}, {}),
                     1);
  add(rig, "two windows, two sets, refuse", full);
  Cases cases(rig);
  cases.add_plan("two windows, allow", {both.acquire_step("w")}, Verdict::allowed);
  cases.add_plan("two windows, refuse", {spent.acquire_step("w")}, Verdict::refused);

  add(rig, "one window, hash and set, allow", hash_and_set_at(rig, "oa", 201));
  const Maker out = hash_and_set_at(rig, "or", 0);
  fill(out, rig, 0, 301);
  add(rig, "one window, hash and set, refuse", out);
  cases.add_plan("one window, allow", {one.acquire_step("w")}, Verdict::allowed);
  cases.add_plan("one window, refuse", {one_spent.acquire_step("w")}, Verdict::refused);
  cases.add_plan("sliding counter, allow", {counter.acquire_step("w")}, Verdict::allowed);

  // Full logs, as calls fill them one by one.
  const Maker sets = two_sets_at(rig, "wb", 201);
  fill(sets, rig, 0, 400);
  static const SlidingWindow kept(rig.store(), "kept", {{25, microseconds{1}}, {300, hours{24}}});
  for (int i = 0; i < 300; ++i) static_cast<void>(kept.try_acquire("w"));
  static_cast<void>(counter.try_acquire("w"));
  rig.note_bytes("two sets", rig.memory_usage("{wb}.short") + rig.memory_usage("{wb}.long"));
  rig.note_bytes("windows", rig.memory_usage(render(kept.acquire_step("w").key)));
  rig.note_bytes("sliding counter", rig.memory_usage(render(counter.acquire_step("w").key)));

  const char* const us = "server us";
  return {{us, "two windows, allow", "two windows, two sets, allow"},
          {us, "two windows, refuse", "two windows, two sets, refuse"},
          {us, "one window, allow", "one window, hash and set, allow"},
          {us, "one window, refuse", "one window, hash and set, refuse"},
          {us, "sliding counter, allow", "two windows, allow"},
          {"bytes", "windows", "two sets"},
          {"bytes", "sliding counter", "two sets"}};
}

}  // namespace sluice::bench
