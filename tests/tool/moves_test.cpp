// States that are moved between stores, of every kind, and those of earlier versions.
#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "sluice/sluice.hpp"
#include "sluice/testing/recording_store.hpp"
#include "src/core/state_file.hpp"
#include "src/testing/model.hpp"
#include "tests/catch.hpp"
#include "tests/support/frozen_redis.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"
#include "tests/support/temporary_file.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using testing::detail::ask;
using testing::detail::Subject;

const std::string recorded_states = SLUICE_RECORDED ".txt";
const std::string recorded_values = SLUICE_RECORDED ".values";  // the same, as Redis holds them
const std::string recorded_answers = SLUICE_RECORDED ".trace";

std::unique_ptr<MemoryStore> make_named_store(VirtualClock& clock) {
  return make_memory_store({.max_keys = 4096, .clock = &clock, .keep_names = true});
}

/// `sluice <words>` on the server of for_each_store(), at the time of the clock.
nlohmann::json on_server(VirtualClock& clock, const std::string& words) {
  FrozenRedis& redis = FrozenRedis::instance();
  redis.set_time(clock.now());
  const Ran ran = sluice_tool(url_of(redis.server()), words + " --json");
  INFO(ran.output);
  REQUIRE(ran.code == 0);
  return json_lines(ran.output).at(0);
}

/// The first kind that has a state and is not among these; empty if there is none.
std::string missing_kind(const std::set<StateKind>& kinds) {
  for (const StateDescription& each : state_descriptions) {
    const bool has_state = each.kind != StateKind::constant;
    if (has_state && !kinds.contains(each.kind)) return each.name;
  }
  return {};
}

/// Random requests for some keys of each kind, some with an id.
class Program {
 public:
  /// One of so many requests has an id.
  Program(Rng& rng, int keys, const std::string& more, std::uint64_t ids) : rng_(rng), ids_(ids) {
    for (const auto& generator : testing::detail::generators()) {
      for (int i = 0; i < keys && generator.kind != StateKind::constant; ++i) {
        subjects.emplace_back(std::to_string(subjects.size()) + more, "limit", generator,
                              generator.any(rng));
      }
    }
  }

  /// Asks each store the same: the answers must be the same.
  void run(int times, VirtualClock& clock, const std::vector<Store*>& stores) {
    for (int i = 0; i < times; ++i) {
      const Step step = subjects[rng_.below(subjects.size())].draw(rng_);
      Plan plan(step);
      if (rng_.below(ids_) == 0) plan = plan.idempotent({rng_.below(4), 7});
      const auto a = ask(*stores[0], plan);
      for (Store* const other : stores) {
        if (other == stores[0]) continue;
        const auto b = ask(*other, plan);
        using testing::detail::describe;
        CAPTURE(describe(step), describe(a.error), describe(a.decision), describe(b.error),
                describe(b.decision));
        REQUIRE(a.error == b.error);
        REQUIRE((a.error || testing::detail::same(a.decision, b.decision)));
        REQUIRE(a.output == b.output);
      }
      clock.advance(Span{rng_.below(rng_.below(20) == 0 ? 200'000 : 5'000)});
    }
  }

  std::deque<Subject> subjects{};

 private:
  Rng& rng_;
  std::uint64_t ids_;
};

TEST_CASE("a state of each kind goes on where it was moved to", "[moves]") {
  Random random("a state of each kind goes on where it was moved to");
  CAPTURE(random.repeat());
  std::set<StateKind> kinds;
  const auto life = [&](Store& redis, VirtualClock& clock) {
    const auto first = make_named_store(clock);
    const auto second = make_named_store(clock);
    const auto third = make_named_store(clock);
    Program program(random, 24, "\xff {}: %", 8);
    program.run(6'000, clock, {first.get()});
    const TemporaryFile file;
    const auto saved = save_states(*first, file.path);
    CHECK(saved.unnamed == 0);
    clock.advance(Span{random.between(0, 2'000'000)});
    for (const auto& each : detail::read_states(file.path, to_word(clock.now()))) {
      kinds.insert(each.kind);
    }
    CHECK(on_server(clock, "import --yes " + file.path)["restored"] == saved.saved);
    CHECK(load_states(*second, file.path).restored == saved.saved);
    program.run(1'500, clock, {first.get(), second.get(), &redis});
    CHECK(on_server(clock, "export " + file.path)["exported"] > 50);
    clock.advance(Span{random.between(0, 2'000'000)});
    CHECK(load_states(*third, file.path).restored > 50);
    program.run(1'500, clock, {first.get(), third.get(), &redis});
  };
  for (std::size_t i = 0; i < scaled(2); ++i) for_each_store(life, Stores::redis);
  if (!redis_left_out()) CHECK(missing_kind(kinds) == "");
}

/// These calls with the answers of a store, as if all stores were of one kind.
testing::Trace answers_of(Store& store, const testing::Trace& trace) {
  testing::RecordingStore recording(store);
  for (const auto& call : trace.calls) {
    const Step step = call.steps.at(0).step();
    Plan plan(step);
    if (call.id) plan = plan.idempotent(*call.id);
    (void)ask(recording, plan);
  }
  testing::Trace answered = recording.trace();
  for (auto& call : answered.calls) {
    call.decision.source = Source::memory;
    for (Decision& each : call.each) each.source = Source::memory;
  }
  return answered;
}

/// A kind of whose states no answer depends; empty if there is none.
std::string untold_kind(const testing::Trace& trace) {
  VirtualClock clock(trace.start());
  const auto fresh = answers_of(*make_named_store(clock), trace);
  std::set<StateKind> kinds;
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const auto& call = trace.calls[i];
    if (call == fresh.calls.at(i)) continue;
    kinds.insert(call.id ? StateKind::idempotency_record : call.steps[0].operation->kind);
  }
  return missing_kind(kinds);
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}
std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (; hex.size() >= 2; hex.remove_prefix(2)) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(0, 2)), nullptr, 16));
  }
  return bytes;
}

/// Writes what scripts have left on the server: a key, its expiry in milliseconds and its value.
void save_values() {
  RedisClient client(FrozenRedis::instance().server().unix_socket());
  std::map<std::string, std::string> lines;
  for (const auto& key : client({"KEYS", "*"}).elements) {
    const auto expiry = client({"PEXPIRETIME", key.text}).integer;
    CHECK(expiry > 0);
    lines[key.text] = fmt::format("{} {}", expiry, hex_of(client({"GET", key.text}).text));
  }
  std::ofstream file(recorded_values);
  for (const auto& [key, line] : lines) file << key << ' ' << line << '\n';
}

/// Writes the states that a program leaves, and what peeks say a moment later, and a request whose
/// id is known. False if the answers do not depend on states of every kind.
bool record(std::uint64_t seed, Store& redis, VirtualClock& clock) {
  SeededRng rng(seed);
  const auto store = make_named_store(clock);
  Program program(rng, 2, "", 100);
  program.run(500, clock, {store.get(), &redis});
  const TokenBucket bucket(*store, "limit", Quota::per_minute(10));
  const testing::TracedStep three(bucket.acquire_step("once", 3));  // of any store
  const Step once = three.step();
  for (Store* const each : {static_cast<Store*>(store.get()), &redis}) {
    (void)decide(*each, Plan(once).idempotent({1, 7}));
  }
  CHECK(save_states(*store, recorded_states).unnamed == 0);
  save_values();
  clock.advance(1ms);
  testing::RecordingStore recording(*store);
  (void)ask(recording, Plan(once).idempotent({1, 7}));
  for (Subject& subject : program.subjects) {
    for (const Operation* const row : testing::detail::rows_of(subject.generator->kind)) {
      if (!row->writes) (void)ask(recording, subject.draw(rng, *row));
    }
  }
  testing::save_trace(recording.trace(), recorded_answers);
  return untold_kind(recording.trace()).empty();
}

/// Run once for a version, by its name.
TEST_CASE("states of this version are recorded", "[.record]") {
  bool is_whole = false;
  for (std::uint64_t seed = 1; !is_whole; ++seed) {
    REQUIRE(seed < 1'000);
    for_each_store(
        [&](Store& redis, VirtualClock& clock) { is_whole = record(seed, redis, clock); },
        Stores::redis);
  }
}

TEST_CASE("recorded states of 0.1.0 are read, and answer as they did", "[moves]") {
  const testing::Trace trace = testing::load_trace(recorded_answers);
  CHECK(untold_kind(trace) == "");
  VirtualClock clock(trace.start());
  const auto store = make_named_store(clock);
  const std::size_t restored = load_states(*store, recorded_states).restored;
  CHECK(to_text(answers_of(*store, trace)) == to_text(trace));
  const auto on_redis = [&](Store& redis, VirtualClock& of_redis) {
    of_redis.set(clock.now());
    CHECK(on_server(of_redis, "import --yes " + recorded_states)["restored"] == restored);
    CHECK(to_text(answers_of(redis, trace)) == to_text(trace));
  };
  for_each_store(on_redis, Stores::redis);
}

TEST_CASE("values that 0.1.0 has left on a server are read, and answer as they did", "[moves]") {
  const testing::Trace trace = testing::load_trace(recorded_answers);
  const auto on_redis = [&](Store& redis, VirtualClock& clock) {
    clock.set(trace.start());
    FrozenRedis::instance().set_time(clock.now());
    RedisClient client(FrozenRedis::instance().server().unix_socket());
    std::ifstream file(recorded_values);
    for (std::string key, expiry, hex; file >> key >> expiry >> hex;) {
      CHECK(client({"SET", key, bytes_of(hex), "PXAT", expiry}).text == "OK");
    }
    CHECK(to_text(answers_of(redis, trace)) == to_text(trace));
  };
  for_each_store(on_redis, Stores::redis);
}

TEST_CASE("import asks, checks the whole file first, and replaces nothing", "[moves]") {
  if (redis_left_out()) return;
  RedisServer server;
  RedisClient client(server.unix_socket());
  const TemporaryFile file;
  const auto run = [&](const std::string& line) {
    return shell(url_of(server), "FILE=" + file.path + "; " + line + " 2>&1").output;
  };
  const auto store = make_redis_store(options_of(server));
  const TokenBucket bucket(*store, "api", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 3));
  REQUIRE(bucket.try_acquire("b", 3));
  client({"PERSIST", "{b}:api:5/day"});
  client({"SET", "other", "x"});
  client({"COPY", "{a}:api:5/day", "p:{a}:api:5/day"});
  CHECK_THAT(run("$SLUICE export $FILE"),
             contains_text("2 states in " + file.path + "; 1 of another key_prefix") &&
                 contains_text("1 key of others"));
  CHECK_THAT(file.text(), contains_text("{b}:api:5/day 18 token_bucket 4503599627370496 "));
  CHECK_THAT(run("$SLUICE export $FILE --prefix p: '*'"), contains_text("1 state in"));

  client({"DEL", "{a}:api:5/day"});
  const std::string good = file.text();
  CHECK_THAT(run("$SLUICE import $FILE </dev/null"), contains_text("nobody can be asked here"));
  file.write(good + "{b}:x 99 token_bucket 1 1\n");
  CHECK_THAT(run("($SLUICE import $FILE --yes; echo code $?)"),
             contains_text(":4: lines behind") && contains_text("code 2"));
  CHECK(client({"EXISTS", "{a}:api:5/day"}).integer == 0);
  file.write(good.substr(0, good.find("end")) + "{c}:x 18 token_bucket 1 5 6\nend 2\n");
  CHECK_THAT(run("$SLUICE import /dev/stdin --yes <$FILE"),
             contains_text("1 restored, 0 known there and left, 1 expired"));
  file.write(good);
  CHECK(bucket.peek("a").remaining == 2);
  const auto ttl = client({"PTTL", "{a}:api:5/day"}).integer;
  CHECK(std::abs(ttl - client({"PTTL", "p:{a}:api:5/day"}).integer) < 1'000);
  // The scripts find the expiry in the state as well.
  Word expiry = 0;
  std::memcpy(&expiry, client({"GET", "{a}:api:5/day"}).text.data() + 17, sizeof expiry);
  CHECK(expiry / 1'000 + 1 == client({"PEXPIRETIME", "{a}:api:5/day"}).integer);
  REQUIRE(bucket.try_acquire("a", 1));
  CHECK_THAT(run("$SLUICE import $FILE --yes"), contains_text("0 restored, 1 known"));
  CHECK(bucket.peek("a").remaining == 1);
  // Through a pipe, to another prefix; and what the server refuses is told.
  CHECK_THAT(run("$SLUICE export - 2>/dev/null | $SLUICE import - --yes --prefix q: --json"),
             contains_text("\"restored\":2"));
  client({"FLUSHALL"});
  client({"CONFIG", "SET", "maxmemory", "1"});
  CHECK_THAT(run("$SLUICE import $FILE --yes"),
             contains_text("OOM") && contains_text("0 states restored so far"));
}

}  // namespace
}  // namespace sluice::test
