// Traces as text: written, read, compared. Threading: single-threaded.
#include <filesystem>

#include "sluice/sluice.hpp"
#include "sluice/testing/recording_store.hpp"
#include "sluice/testing/trace.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/testing/random_trace.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;
using sluice::test::Random;

namespace {

/// What is wrong with a text, as parse_trace() says it.
std::string fault_of(const std::string& text) {
  try {
    (void)parse_trace(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

std::string load_fault(const std::string& path) {
  try {
    (void)load_trace(path);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

const std::string title = "sluice-trace 1 from 946684800000000\n";
const std::string take = "+0.000000 token_bucket.acquire {alice}:api:10/s 1,1,100000,100000,1 ";

}  // namespace

TEST_CASE("a trace is written as one line a call, with times from its start", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(1));
  const TokenBucket other(store, "a b", Quota::per_minute(2));
  (void)bucket.try_acquire("alice");
  clock.advance(99'999us);
  (void)bucket.try_acquire("alice");
  store.mark("the server restarts");
  clock.advance(1us);
  (void)decide(store, {bucket.acquire_step("alice"), other.acquire_step("{}")});
  (void)decide(store, Plan(bucket.acquire_step("bob")).idempotent({1, 0xabc}));
  std::error_code error;
  (void)bucket.try_acquire("alice", 7, error);
  CHECK(
      to_text(store.trace()) ==
      "sluice-trace 1 from 946684800000000\n"
      "+0.000000 token_bucket.acquire {alice}:api:10/s 1,1,100000,100000,1 -> allowed 0/1 reset "
      "100ms "
      "from virtual\n"
      "+0.099999 token_bucket.acquire {alice}:api:10/s 1,1,100000,100000,1 -> refused 0/1 retry "
      "1us "
      "reset 1us from virtual\n"
      "+0.099999 # the server restarts\n"
      "+0.100000 token_bucket.acquire {alice}:api:10/s 1,1,100000,100000,1 & token_bucket.acquire "
      "{%7B%7D}:a%20b:2/min 2,1,30000000,60000000,1 -> allowed 0/1 reset 100ms from virtual & "
      "allowed "
      "0/1 reset 100ms from virtual & allowed 1/2 reset 30s from virtual\n"
      "+0.100000 once 00000000000000010000000000000abc token_bucket.acquire {bob}:api:10/s "
      "1,1,100000,100000,1 -> allowed 0/1 reset 100ms from virtual\n"
      "+0.100000 token_bucket.acquire {alice}:api:10/s 1,1,100000,100000,7 -> error "
      "cost_exceeds_capacity\n");
}

TEST_CASE("any trace is read as it was written", "[testing]") {
  Random random("any trace is read as it was written");
  CAPTURE(random.repeat());
  for (std::size_t i = 0; i < test::scaled(300, 20); ++i) {
    const Trace trace = test::random_trace(random);
    const std::string text = to_text(trace);
    CAPTURE(text);
    const Trace read = parse_trace(text);
    REQUIRE(to_text(read) == text);
    REQUIRE_FALSE(find_difference(trace, read));
    REQUIRE(read.calls == trace.calls);
    REQUIRE(read.marks == trace.marks);
  }
}

TEST_CASE("a text that is cut or changed anywhere is read or refused, never worse", "[testing]") {
  Random random("a text that is cut or changed anywhere is read or refused, never worse");
  CAPTURE(random.repeat());
  std::size_t refused = 0;
  for (std::size_t i = 0; i < test::scaled(3'000, 300); ++i) {
    std::string text = to_text(test::random_trace(random));
    const auto at = random.below(text.size());
    if (random.one_in(2)) {
      text.resize(at);
    } else {
      text[at] = static_cast<char>(random.below(256));
    }
    const std::string fault = fault_of(text);
    if (fault == "nothing") continue;
    ++refused;
    REQUIRE(fault.find("line ") == 0);
  }
  CHECK(refused > 0);
}

TEST_CASE("bad texts name the line and the reason", "[testing]") {
  CHECK(fault_of("") == "line 1: a trace begins with its title");
  CHECK(fault_of("# a comment\nsluice-trace 2 from 0\n") ==
        "line 2: expected \"sluice-trace 1 from ...\", got \"sluice-trace 2 from 0\"");
  CHECK(fault_of("sluice-trace 1 from -5\n") ==
        "line 1: expected microseconds from 0 to 2^52, got \"sluice-trace 1 from -5\"");
  CHECK(fault_of(title + "0.5 x\n") == "line 2: expected a time such as +1.500000, got \"0.5\"");
  CHECK(fault_of(title + "\n+0.000000 bucket.take {a}:b 1\n") ==
        "line 3: expected the name of an operation such as token_bucket.acquire, got "
        "\"bucket.take\"");
  CHECK(fault_of(title + "+0.000000 token_bucket.acquire alice 1\n") ==
        "line 2: expected a key such as {tag}:name, got \"alice\"");
  CHECK(fault_of(title + "+0.000000 token_bucket.acquire {%4}:a 1\n") ==
        "line 2: expected a tag with % and two hex digits, got \"%4\"");
  CHECK(fault_of(title + "+0.000000 token_bucket.acquire {a}:b 1,2\n") ==
        "line 2: expected 5 arguments of token_bucket.acquire, got 2");
  CHECK(fault_of(title + "+0.000000 token_bucket.acquire {a}:b 1,x,3,4,5\n") ==
        "line 2: expected arguments, at most 8 numbers with commas, got \"1,x,3,4,5\"");
  CHECK(fault_of(title + take + "=> allowed 1/1\n") == "line 2: expected \"->\", got \"=>\"");
  CHECK(fault_of(title + take + "-> granted\n") ==
        "line 2: expected allowed, refused or error, got \"granted\"");
  CHECK(fault_of(title + take + "-> allowed 1\n") ==
        "line 2: expected what remains and the limit, such as 4/5, got \"1\"");
  CHECK(fault_of(title + take + "-> refused 0/1 retry 5 from virtual\n") ==
        "line 2: expected a length of time such as 100ms, got \"5\"");
  CHECK(fault_of(title + take + "-> refused 0/1 from disk\n") ==
        "line 2: expected memory, virtual, redis, other, fallback, policy or prefetched, got "
        "\"disk\"");
  CHECK(fault_of(title + take + "-> error never_heard_of\n") ==
        "line 2: expected the name of an error such as timed_out, or generic:110, got "
        "\"never_heard_of\"");
  CHECK(fault_of(title + take + "-> allowed 0/1 from virtual and more\n") ==
        "line 2: expected the end of the line, got \"and more\"");
  CHECK(fault_of(title + take +
                 "-> allowed 0/1 from virtual & allowed 0/1 from virtual & allowed 0/1 from virtual"
                 "\n") == "line 2: expected a decision for each of 1 steps, got 2");
  CHECK(fault_of(title + "+0.000000 once 12 token_bucket.acquire\n") ==
        "line 2: expected an id of 32 hex digits, got \"12\"");
}

TEST_CASE("a trace is saved to a file and loaded again, and faults name the file", "[testing]") {
  Random random("a trace is saved to a file and loaded again, and faults name the file");
  const Trace trace = test::random_trace(random);
  const auto folder = std::filesystem::temp_directory_path();
  const std::string path = (folder / ("sluice-" + std::to_string(random.next()))).string();
  save_trace(trace, path);
  CHECK(load_trace(path).calls == trace.calls);
  std::filesystem::resize_file(path, 5);
  CHECK(load_fault(path).find(path + ": line 1: expected") == 0);
  std::filesystem::remove(path);
  CHECK(load_fault(path) == "cannot read the trace from " + path);
  CHECK_THROWS_WITH(save_trace(trace, "/no/such/folder/x"),
                    "cannot write the trace to /no/such/folder/x");
}

TEST_CASE("the first line in which two traces differ is named", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(2));
  (void)bucket.try_acquire("alice");
  const Trace one = store.trace();
  (void)bucket.try_acquire("alice");
  const Trace two = store.trace();
  CHECK_FALSE(find_difference(two, two));
  CHECK(find_difference(one, two)->what.find("line 3 of the trace: expected the end, got \"+0") ==
        0);
  CHECK(find_difference(two, one)->what.find("\", got the end") != std::string::npos);
  Trace changed = two;
  changed.calls[0].decision.remaining = 0;
  changed.calls[0].each[0].remaining = 0;
  CHECK(find_difference(two, changed)->what.find("line 2 of the trace: expected \"+0.000000 ") ==
        0);
}
