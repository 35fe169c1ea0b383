// What a place that is taken and given back costs the server, beside the sorted set that most
// projects start from, with whole seconds as its article has them, and with microseconds. One cycle
// of commands is one decision; the figure is the server's own.
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/redis/cases.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t depth = 64;  // cycles in flight
constexpr std::size_t cycles = batches * depth;
constexpr Word limit = 100;
constexpr Word locked_slot = 50;

// Random ids in a sorted set by the time they were taken, in the client's time: the expired are
// swept by a command before, the count and the addition are one script, giving back is a command
// after.
constexpr std::string_view sorted_set = R"lua(
local members, most, at = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local taken = redis.call('ZCARD', members)
local fits = taken < most
if fits then redis.call('ZADD', members, at, ARGV[3]) end
return {fits, taken}
)lua";
constexpr Word sorted_set_ttl = 60'000'000;  // us

/// Makes the commands of `cycles` cycles.
using Maker = std::function<std::vector<Command>()>;

void add(Rig& rig, const std::string& name, Maker make, std::size_t commands_each) {
  add_server_case(rig, {name, std::move(make), depth, commands_each});
}

/// How a client writes a time of its clock in microseconds.
using Writer = std::string (*)(Word us);

/// Four random bytes.
std::string draw_id() {
  static std::minstd_rand random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += static_cast<char>(random() & 255);
  return id;
}

/// Each cycle has its own id, and the time at which it is made. Fifty are locked, taken a second
/// after each other.
void add_sorted_set(Rig& rig, const std::string& name, const std::string& key, Writer write) {
  const auto make = [&rig, key, write] {
    const auto clock = [] {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      return Word{std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
    };
    const Command script = rig.script(sorted_set, {key}, {std::to_string(limit)});
    const auto take = [&](Word at, const std::string& id) {
      std::vector<std::string> words = script.words();
      words.insert(words.end(), {write(at), id});
      return Command(std::move(words));
    };
    rig.command({"DEL", key});
    const Word start = clock();
    for (Word i = locked_slot; i > 0; --i) {
      rig.raw().pipeline(take(start - i * 1'000'000, draw_id()), 1);
    }
    std::vector<Command> commands;
    for (std::size_t i = 0; i < cycles; ++i) {
      const Word at = clock();
      const std::string id = draw_id();
      commands.push_back(Command({"ZREMRANGEBYSCORE", key, "-inf", write(at - sorted_set_ttl)}));
      commands.push_back(take(at, id));
      commands.push_back(Command({"ZREM", key, id}));
    }
    return commands;
  };
  rig.raw().pipeline(make());
  rig.note_bytes(name, rig.memory_usage(key));
  add(rig, name, make, 3);
}

/// A request by the place that a limiter's own call would name.
Step placed(Step step, std::size_t argument, Word value) {
  step.args[argument] = value;
  return step;
}

}  // namespace

std::vector<Comparison> register_lease_cases(Rig& rig) {
  using std::chrono::hours;
  add_sorted_set(rig, "sorted set cycle, whole seconds", "seconds",
                 [](Word us) { return std::to_string(us / 1'000'000); });
  add_sorted_set(rig, "sorted set cycle, microseconds", "micros", [](Word us) {
    std::string text = std::to_string(us);
    return text.insert(text.size() - 6, ".");
  });

  const ConcurrencyLimiter jobs(rig.store(), "jobs", limit, {.ttl = hours{1}});
  const Key key("alice");
  for (Word i = 0; i < locked_slot; ++i) {
    const LeaseId id{0xabc0000, static_cast<std::uint64_t>(i)};
    rig.raw().pipeline(rig.request(std::array{jobs.acquire_step(key, id)}), 1);
  }
  const LeaseId id{0x5f1ab2c3, 0x5f1ab2c3};
  const Step take = placed(jobs.acquire_step(key, id), 4, 0);
  const Step refund = placed(jobs.release_step(key, id), 1, locked_slot + 1);
  const auto cycle = std::make_shared<std::vector<Command>>();
  cycle->push_back(rig.request({&take, 1}));
  cycle->push_back(rig.request({&refund, 1}));
  const auto make = [cycle] {
    std::vector<Command> commands;
    for (std::size_t i = 0; i < cycles; ++i) {
      for (const Command& command : *cycle) commands.emplace_back(command.words());
    }
    return commands;
  };
  rig.raw().pipeline(make());
  add(rig, "lease cycle", make, 2);
  rig.note_bytes("lease cycle", rig.memory_usage("{alice}:jobs"));

  const char* const us = "server us";
  return {{us, "lease cycle", "sorted set cycle, whole seconds"},
          {us, "lease cycle", "sorted set cycle, microseconds"},
          {"bytes", "lease cycle", "sorted set cycle, whole seconds"}};
}

}  // namespace sluice::bench
