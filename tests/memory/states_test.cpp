// States of a memory store in a file: a restart mints no burst, and a wrong file changes nothing.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "src/core/state_file.hpp"
#include "tests/memory/fixture.hpp"
#include "tests/support/temporary_file.hpp"

namespace {

int fsyncs = 0;
bool disk_fails = false;

}  // namespace

/// In the place of the C library's: a disk that can fail, and tells what it was asked.
extern "C" int fsync(int /*file*/) {
  ++fsyncs;
  if (!disk_fails) return 0;
  errno = EIO;
  return -1;
}

namespace sluice::test {
namespace {

/// A process: its store has a clock that all of them share, and a hash of its own.
std::unique_ptr<MemoryStore> start(VirtualClock& clock, std::size_t max_keys = 1000,
                                   std::size_t max_bytes = std::size_t{1} << 24) {
  return make_memory_store(
      {.max_keys = max_keys, .max_bytes = max_bytes, .clock = &clock, .keep_names = true});
}

std::string header() { return "sluice states 1 0.1.0\n"; }

/// What load_states() says of this file; empty if it reads it.
std::string refusal_of(MemoryStore& store, const std::string& path) {
  try {
    (void)load_states(store, path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a process that keeps its states mints no burst when it starts again", "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const std::string colleague(Key::max_plain_bytes, '\n');
  {
    const auto store = start(clock);
    const TokenBucket bucket(*store, "api", Quota::per_minute(6).burst(10));
    const SlidingWindow window(*store, "window", {{3, 1min}, {5, 1h}});
    REQUIRE(bucket.try_acquire("a", 7));
    REQUIRE(bucket.try_acquire(colleague, 10));
    REQUIRE(window.try_acquire("a", 3));
    CHECK(bucket.peek("nobody").remaining == 10);
    CHECK(save_states(*store, file.path).saved == 3);
  }
  clock.advance(10s);
  const auto store = start(clock);
  const LoadedStates loaded = load_states(*store, file.path);
  CHECK(loaded.restored == 3);
  const TokenBucket bucket(*store, "api", Quota::per_minute(6).burst(10));
  const SlidingWindow window(*store, "window", {{3, 1min}, {5, 1h}});
  CHECK(bucket.peek("a").remaining == 4);
  CHECK(bucket.peek(colleague).remaining == 1);
  CHECK(window.peek("a", 1).retry_after == 50s);
  clock.advance(1s);
  CHECK(save_states(*store, file.path).saved == 3);  // they are kept as long as they mean something
  // Once more, all are known; later, all are over.
  CHECK(load_states(*store, file.path).known == 3);
  CHECK(bucket.peek("a").remaining == 4);
  clock.advance(2h);
  CHECK(load_states(*start(clock), file.path).expired == 3);
}

TEST_CASE("the file is text, in the order of the keys", "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto store = start(clock);
  REQUIRE(SlotLock(*store, "lock", 1s).try_acquire("b c"));
  REQUIRE(FixedWindow(*store, "day", 9, Calendar::daily()).try_acquire("a", 2));
  CHECK(save_states(*store, file.path).saved == 2);
  CHECK(file.text() ==
        header() +
            "{a}:day:daily@UTC 22 fixed_window 946771260000000 946684800000000 4\n"
            "{b%20c}:lock 8 slot_lock 946684861000000 946684801000000 946684800000000\n"
            "end 2\n");
}

TEST_CASE("of a key that was seen twice the file has the last state", "[states]") {
  const TemporaryFile file;
  const auto of = [](const char* key, Word word) {
    return detail::SavedState{key, StateKind::token_bucket, 9, {word, 1}};
  };
  CHECK(detail::write_states(file.path, {of("{b}:x", 5), of("{a}:x", 6), of("{b}:x", 7)}) == 2);
  CHECK(file.text() ==
        header() + "{a}:x 18 token_bucket 9 6 1\n{b}:x 18 token_bucket 9 7 1\nend 2\n");
}

TEST_CASE("a state that a store knows is not replaced, whatever its kind", "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto old = start(clock);
  REQUIRE(SlotLock(*old, "limit", 1h).try_acquire("a"));
  REQUIRE(SlotLock(*old, "limit", 1h).try_acquire("b"));
  const Lease first = ConcurrencyLimiter(*old, "jobs", 2).try_acquire("a");
  REQUIRE(first);
  CHECK(save_states(*old, file.path).saved == 3);

  const auto store = start(clock);
  const SlotLock lock(*store, "limit", 1s);
  const ConcurrencyLimiter jobs(*store, "jobs", 2);
  const Lease lease = jobs.try_acquire("a", 2);
  REQUIRE(lease);
  REQUIRE(lock.try_acquire("a"));
  const LoadedStates loaded = load_states(*store, file.path);
  CHECK(loaded.known == 2);
  CHECK(loaded.restored == 1);
  CHECK(lock.peek("a").retry_after == 1s);
  CHECK(lock.peek("b").retry_after == 1h);
  CHECK(jobs.peek("a").remaining == 0);

  // Of another kind: the state stays, and the file's does not.
  file.write(header() +
             "{a}:limit 10 gate 946695600000000 946695000000000 946684800000000\nend 1\n");
  CHECK(load_states(*store, file.path).known == 1);
  clock.advance(2min);  // it means nothing any more
  CHECK(load_states(*store, file.path).restored == 1);
}

TEST_CASE("a shorter state takes the place of a longer one that means nothing any more",
          "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto store = start(clock);
  {
    const SlidingWindow window(*store, "window", {{50, 1s}});
    for (int i = 0; i < 50; ++i, clock.advance(1ms)) REQUIRE(window.try_acquire("a"));
  }
  clock.advance(24h);
  const auto other = start(clock);
  REQUIRE(SlidingWindow(*other, "window", {{50, 1s}}).try_acquire("a"));
  CHECK(save_states(*other, file.path).saved == 1);
  const std::string saved = file.text();
  CHECK(load_states(*store, file.path).restored == 1);
  CHECK(save_states(*store, file.path).saved == 1);
  CHECK(file.text().substr(0, file.text().find("end")).size() == saved.find("end"));
  CHECK(SlidingWindow(*store, "window", {{50, 1s}}).peek("a").remaining == 49);
}

TEST_CASE("a hashed part, a full table and full blocks are told", "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto old = start(clock);
  const TokenBucket bucket(*old, "api", Quota::per_day(5));
  const SlidingWindow window(*old, "window", {{5'000, 24h}});
  REQUIRE(bucket.try_acquire(std::string(Key::max_plain_bytes + 1, 'x')));
  for (int i = 0; i < 200; ++i) REQUIRE(bucket.try_acquire(i));
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 300; ++k) REQUIRE(window.try_acquire(i));
  }
  CHECK(save_states(*old, file.path).saved == 204);
  const LoadedStates loaded = load_states(*start(clock, 8, 32'768), file.path);
  CHECK(loaded.hashed == 1);
  CHECK(loaded.no_room > 150);
  CHECK(loaded.restored + loaded.no_room == 203);
  const LoadedStates blocks = load_states(*start(clock, 400, 50'000), file.path);
  CHECK(blocks.restored >= 200);
  CHECK(blocks.no_room >= 1);
}

TEST_CASE("slots that get new owners have their names", "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto store = start(clock, 300);
  const TokenBucket bucket(*store, "api", Quota::per_second(1).burst(5));
  const SlidingWindow window(*store, "window", {{5, 1s}});
  for (const char* const stem : {"a", "b", "c"}) {
    for (std::size_t i = 0; i < 60; ++i) {
      const std::string other = name(stem, i + 1'000);
      REQUIRE(bucket.try_acquire(name(stem, i)));
      REQUIRE(window.try_acquire(name(stem, i)));
      REQUIRE(decide(*store, Plan{bucket.acquire_step(other), window.acquire_step(other)}));
    }
    CHECK(save_states(*store, file.path).saved == 240);
    CHECK_THAT(file.text(), contains_text(std::string("{") + stem + "59}:api"));
    clock.advance(2h);
  }
  CHECK(store->stats().evicted_idle > 0);
}

TEST_CASE("states are saved beside decisions, each whole", "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto store = start(clock);
  constexpr Word limit = 20'000;
  std::atomic<bool> over{false};
  std::atomic<int> ready{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 2; ++caller) {
    callers.emplace_back([&, caller] {
      const TokenBucket bucket(*store, "api", Quota::per_day(limit));
      const SlidingWindow window(*store, "window", {{limit, 24h}});
      ++ready;
      for (int i = 0; !over && i < limit / 2; ++i) {
        (void)bucket.try_acquire(i % 7);
        (void)decide(*store, Plan{bucket.acquire_step(caller), window.acquire_step(7 + i % 3)});
      }
    });
  }
  while (ready < 2) std::this_thread::yield();
  Word before = 0;
  for (int i = 0; i < 20; ++i) {
    CHECK(save_states(*store, file.path).unnamed == 0);
    const auto copy = start(clock);
    (void)load_states(*copy, file.path);
    Word used = 0;
    for (int key = 0; key < 10; ++key) {
      used += limit - TokenBucket(*copy, "api", Quota::per_day(limit)).peek(key).remaining;
      used += limit - SlidingWindow(*copy, "window", {{limit, 24h}}).peek(key).remaining;
    }
    CHECK(used >= before);
    before = used;
  }
  over = true;
  for (auto& caller : callers) caller.join();
  CHECK(before > 0);
}

TEST_CASE("a file that is wrong anywhere restores nothing, and is told what is allowed",
          "[states]") {
  VirtualClock clock;
  const TemporaryFile file;
  const auto store = start(clock);
  const std::string good = "{a}:x 18 token_bucket 946684900000000 5 946684800000000\n";
  const auto with = [&](const std::string& line) { return header() + good + line + "\nend 2\n"; };
  const auto kind = [&](const std::string& text) { return with("{b}:x " + text + " 9466849 5 6"); };
  const auto words = [&](const std::string& text) {
    return with("{b}:x 18 token_bucket 946684900000000 " + text);
  };
  std::string many = "{b}:x 7 leases 946684900000000";
  for (std::size_t i = 0; i <= max_state_words; ++i) many += " 0";
  const std::pair<std::string, std::string> files[]{
      {"", ":1: this is no file of states"},
      {"sluice states 2 0.9.0\nend 0\n", ":1: form 2 of a file of states; this version (0.1.0)"},
      {header() + good, ":3: the file has no last line \"end N\": it was written in part"},
      {header() + good + "end 2\n", ":3: the file has 1 states, and its end another number"},
      {header() + good + "end 1\r\n",
       ":3: the line ends with CR LF: the file was changed on its way"},
      {header() + good + "end 1\n" + good, ":4: lines behind the last one"},
      {with(good), ":3: {a}:x: the keys are not in ascending order, each once"},
      {with("{a}:b 18 token_bucket 946684900000000 5 6"),
       ":3: {a}:b: the keys are not in ascending"},
      {with("a:x 18 token_bucket 946684900000000 5 6"),
       ":3: a line is KEY NUMBER KIND EXPIRY WORD"},
      {with("p{b}:x 18 token_bucket 9466849 5 6"), "KEY is {tag}:name or {tag}:name:unit"},
      {kind("17 token_bucket"), "{b}:x: this version (0.1.0) reads no kind 17 token_bucket"},
      {kind("27 constant"), "reads no kind 27 constant"},
      {kind("18 gate"), "reads no kind 18 gate"},
      {kind("8 slot_lock 8"), "{b}:x: words that a slot lock never has"},
      {kind("8 slot_lock -8"), "{b}:x: the expiry must be 1 to 2^52"},
      {words("5 -6"), "{b}:x: what follows the expiry must be words, 0 to 2^52"},
      {words("5  6"), "{b}:x: what follows the expiry must be words"},
      {words("4503599627370497 6"), "{b}:x: words that a token bucket never has"},
      {words("5 6 7"), "{b}:x: words that a token bucket never has"},
      {with(many), "{b}:x: words that leases never has"},
      {header() + std::string(std::size_t{9} << 20, 'x'), ":2: a line of more than 8388608 bytes"},
  };
  for (const auto& [text, why] : files) {
    INFO(text.substr(0, 200));
    file.write(text);
    const std::string refusal = refusal_of(*store, file.path);
    CHECK_THAT(refusal, contains_text(file.path) && contains_text(why));
    CHECK(store->stats().keys == 0);
  }
  file.write(words("5 6"));
  CHECK(refusal_of(*store, file.path).empty());
  CHECK(store->stats().keys == 2);
}

TEST_CASE("files that cannot be read or written are named, and stay as they are", "[states]") {
  VirtualClock clock;
  const auto store = start(clock);
  REQUIRE(SlotLock(*store, "lock", 1s).try_acquire("a"));
  const auto failure = [&](const std::string& path) {
    try {
      (void)save_states(*store, path);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(failure("/dev/full"), contains_text("cannot write /dev/full: No space left"));
  CHECK_THAT(failure("/tmp"), contains_text("cannot write /tmp: Is a directory"));
  CHECK_THAT(failure("/nowhere/x"), contains_text("cannot write /nowhere/x"));
  CHECK(refusal_of(*store, "/nowhere/x") == "cannot read /nowhere/x: No such file or directory");
  CHECK_THAT(refusal_of(*store, "/tmp"), contains_text("cannot read /tmp: Is a directory"));
  CHECK_THAT(refusal_of(*store, "/dev/zero"), contains_text("a line of more than"));

  const TemporaryFile file;
  file.write("precious");
  REQUIRE(::mkdir((file.path + ".part").c_str(), 0700) == 0);
  CHECK_THAT(failure(file.path), contains_text("cannot write " + file.path));
  CHECK(file.text() == "precious");
  std::filesystem::remove(file.path + ".part");
  CHECK(failure(file.path).empty());
  CHECK_FALSE(std::filesystem::exists(file.path + ".part"));
  const Memory nameless(10);
  CHECK_THROWS_AS(save_states(*nameless.store, file.path), std::logic_error);

  fsyncs = 0;
  CHECK(failure(file.path).empty());
  CHECK(fsyncs == 2);  // of the file before it has its name, and of its folder
  file.write("precious");
  disk_fails = true;
  CHECK(failure(file.path) == "cannot write " + file.path + ": Input/output error");
  disk_fails = false;
  CHECK(file.text() == "precious");
  CHECK_FALSE(std::filesystem::exists(file.path + ".part"));
}

}  // namespace
}  // namespace sluice::test
