// Traces as text: written, read, compared. Threading: single-threaded.
#include <filesystem>

#include "sluice/sluice.hpp"
#include "sluice/testing/recording_store.hpp"
#include "sluice/testing/trace.hpp"
#include "sluice/virtual_store.hpp"
#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;
using sluice::test::Random;

namespace {

std::string random_bytes(Random& random, std::size_t most) {
  std::string bytes(random.below(most + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(256));
  return bytes;
}

TracedStep random_step(Random& random) {
  const auto rows = operations();
  TracedStep step;
  step.operation = rows[random.below(rows.size())];
  step.tag = random_bytes(random, 9);
  step.name = random_bytes(random, 200);
  for (std::size_t i = 0; i < step.operation->argument_count; ++i) {
    step.args[i] = random.one_in(9) ? random.between(INT64_MIN, INT64_MAX) : random.between(0, 99);
  }
  step.table.resize(random.one_in(2) ? 0 : random.below(max_table_words + 1));
  for (Word& word : step.table) word = random.between(0, word_limit);
  return step;
}

Decision random_decision(Random& random, Time asked) {
  const auto any_span = [&] {
    return random.one_in(3) ? Span{0} : Span{sluice::testing::detail::log_uniform(random, 52)};
  };
  Decision d;
  d.allowed = random.one_in(2);
  d.source = static_cast<Source>(random.below(6));
  d.step = static_cast<std::uint16_t>(random.below(16));
  d.part = static_cast<std::uint16_t>(random.below(3));
  d.limit = random.between(0, word_limit);
  d.remaining = random.between(-1, word_limit);
  d.retry_after = any_span();
  d.reset_after = any_span();
  d.at = asked + (random.one_in(2) ? any_span() : Span{0});
  return d;
}

TracedCall random_call(Random& random, Time asked) {
  TracedCall call;
  call.asked = asked;
  call.answered = asked + Span{random.one_in(2) ? random.between(-9'999'999, 9'999'999) : 0};
  call.caller = random.one_in(2) ? random_bytes(random, 5) : "";
  call.whole = !random.one_in(9);
  if (random.one_in(3)) call.id = RequestId{random.next(), random.next()};
  call.steps.resize(random.one_in(2) ? 1 : random.below(4));
  for (auto& step : call.steps) step = random_step(random);
  if (random.one_in(4) || call.steps.empty()) {
    call.error = std::error_code(static_cast<int>(1 + random.below(60)), error_category());
    if (random.one_in(3)) call.error = std::make_error_code(std::errc::timed_out);
    call.decision.step = static_cast<std::uint16_t>(random.below(3));
    return call;
  }
  call.decision = random_decision(random, asked);
  for (std::size_t i = 0; i < call.steps.size(); ++i) {
    call.each.push_back(random_decision(random, asked));
  }
  if (call.steps.size() == 1 && random.one_in(2)) call.each[0] = call.decision;
  call.output.resize(random.one_in(2) ? 0 : random.below(12));
  for (Word& word : call.output) word = random.between(0, word_limit);
  return call;
}

/// Calls, marks, and times that mostly go on.
Trace random_trace(Random& random) {
  Trace trace;
  Time now = VirtualClock::default_start;
  for (std::size_t i = random.below(12); i > 0; --i) {
    now += Span{random.one_in(9) ? -random.between(0, 999'999) : random.between(0, 99'999'999)};
    if (random.one_in(4)) {
      trace.marks.push_back({now, trace.calls.size(), "mark " + std::to_string(i)});
    }
    trace.calls.push_back(random_call(random, now));
  }
  return trace;
}

/// What is wrong with a text, as parse_trace() says it.
std::string fault_of(const std::string& text) {
  try {
    (void)parse_trace(text);
  } catch (const std::invalid_argument& error) {
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
    const Trace trace = random_trace(random);
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
    std::string text = to_text(random_trace(random));
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
  const std::string at = "+0.000000 ";
  const std::string bucket = at + "token_bucket.acquire ";
  const std::string from_store = "0/1 from virtual";
  const std::vector<std::array<std::string, 3>> table{
      {"0.5 x", "a time such as +1.500000", "\"0.5\""},
      {at + "bucket.take {a}:b 1", "the name of an operation such as token_bucket.acquire",
       "\"bucket.take\""},
      {at + "once 12 token_bucket.acquire", "an id of 32 hex digits", "\"12\""},
      {bucket + "alice 1", "a key such as {tag}:name", "\"alice\""},
      {bucket + "{%4}:a 1", "a tag with % and two hex digits", "\"%4\""},
      {bucket + "{a}:b 1,2", "5 arguments of token_bucket.acquire", "2"},
      {bucket + "{a}:b 1,x,3,4,5", "arguments, at most 8 numbers with commas", "\"1,x,3,4,5\""},
      {bucket + "{a}:b 1,2,3,4,5,", "arguments, at most 8 numbers with commas", "\"1,2,3,4,5,\""},
      {take + "=> allowed 1/1", "\"->\"", "\"=>\""},
      {take + "-> granted", "allowed, refused or error", "\"granted\""},
      {take + "-> allowed 1", "what remains and the limit, such as 4/5", "\"1\""},
      {take + "-> refused 0/1 retry 5", "a length of time such as 100ms", "\"5\""},
      {take + "-> refused 0/1 from disk",
       "memory, virtual, redis, other, fallback, policy or prefetched", "\"disk\""},
      {take + "-> error never_heard_of", "the name of an error such as timed_out, or generic:110",
       "\"never_heard_of\""},
      {take + "-> allowed " + from_store + " and more", "the end of the line", "\"and more\""},
      {take + "-> allowed " + from_store + " & allowed " + from_store + " & allowed " + from_store,
       "a decision for each of 1 steps", "2"}};
  for (const auto& [text, expected, got] : table) {
    CHECK(fault_of(title + "\n" + text + "\n") == "line 3: expected " + expected + ", got " + got);
  }
}

TEST_CASE("a trace is saved to a file and loaded again, and faults name the file", "[testing]") {
  Random random("a trace is saved to a file and loaded again, and faults name the file");
  const Trace trace = random_trace(random);
  const auto folder = std::filesystem::temp_directory_path();
  const std::string path = (folder / ("sluice-" + std::to_string(random.next()))).string();
  save_trace(trace, path);
  CHECK(load_trace(path).calls == trace.calls);
  std::filesystem::resize_file(path, 5);
  CHECK_THROWS_WITH(load_trace(path), test::contains_text(path + ": line 1: expected"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(load_trace(path), "cannot read the trace from " + path);
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
  changed.marks.push_back({two.start() - 1s, 0, "before the first call"});
  CHECK(changed.start() == two.start() - 1s);
}
