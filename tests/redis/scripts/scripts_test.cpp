// The scripts that are sent: the real Lua files, joined for operations and plans. Threading:
// single-threaded, but for one test in which threads ask for scripts at once.
#include "backends/redis/scripts/scripts.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "backends/redis/scripts/script_joiner.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::has_scripts;
using redis_detail::library;
using redis_detail::lua_files;
using redis_detail::Script;
using redis_detail::script_for;
using redis_detail::ScriptJoiner;
using redis_detail::sha1_of;
using WindowCounts = ScriptJoiner::WindowCounts;

namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// A step of the operation, with a table of so many windows.
Step step_with(const Operation& operation, std::size_t windows = 0) {
  static constexpr Word table[18]{};
  return {&operation, Key("t"), {}, nullptr, std::span(table).first(2 * windows)};
}

const Script& script_of(const std::vector<Step>& steps, bool has_record = false) {
  return script_for(steps, has_record);
}

const ScriptJoiner& real_joiner() {
  static const ScriptJoiner joiner(lua_files(), operations());
  return joiner;
}

/// Every text that is made of the real files.
std::vector<std::string> real_texts() {
  const ScriptJoiner& joiner = real_joiner();
  const WindowCounts all = WindowCounts().set();
  std::vector<std::string> texts{joiner.library("x"), joiner.plan(operations(), false, all),
                                 joiner.plan(operations(), true, all)};
  for (const Operation* const row : operations()) {
    texts.push_back(joiner.step(*row, all));
    texts.push_back(joiner.plan({&row, 1}, false, all));
  }
  return texts;
}

}  // namespace

TEST_CASE("the real files have every operation", "[scripts]") {
  for (const Operation* const row : operations()) {
    CAPTURE(row->name);
    CHECK(real_joiner().has(*row));
    CHECK(has_scripts(std::array{step_with(*row)}));
  }
  const Operation unknown = slot_lock_acquire;
  CHECK_FALSE(has_scripts(std::array{step_with(unknown)}));
  CHECK_FALSE(has_scripts(std::array{step_with(slot_lock_acquire), step_with(unknown)}));
}

TEST_CASE("nothing is left of constants and instructions when the real files are joined",
          "[scripts]") {
  for (const std::string& text : real_texts()) {
    for (const std::string_view left : {"--@", "$", "Errc", "Rule", "Operation",
                                        "IdempotencyRecord", "word_limit", " -- ", "\n ", "\n\n"}) {
      CAPTURE(left);
      CHECK(count(text, left) == 0);
    }
  }
}

TEST_CASE("sha1_of() gives the digest in 40 lower-case digits", "[scripts]") {
  CHECK(sha1_of("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK(sha1_of("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(sha1_of("script") == "cb5346a081dcf654061b7f897ea14d9b43140712");  // a word begins with 0
  CHECK(sha1_of(std::string(1'000'000, 'a')) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_CASE("the library's name holds a digest of its text", "[scripts]") {
  const auto& [name, text] = library();
  const std::string first_line = "#!lua name=" + name + "\n";
  CHECK(text == first_line + real_joiner().library(name));
  CHECK(name == "sluice_" + sha1_of(real_joiner().library("sluice_000000000000")).substr(0, 12));
  CHECK(&library() == &library());
}

TEST_CASE("a script is its text, the digest and the function of the same name", "[scripts]") {
  const Step lock = step_with(slot_lock_acquire);
  const Step bucket = step_with(token_bucket_acquire);
  const Step windows = step_with(sliding_window_acquire);
  const auto is = [](const Script& script, const std::string& text, std::string_view function) {
    return script.text == text && script.sha1 == sha1_of(text) && script.function == function;
  };
  const ScriptJoiner& joiner = real_joiner();
  const std::vector<const Operation*> fixed{&token_bucket_acquire, &slot_lock_acquire};
  const std::vector<const Operation*> mixed{&slot_lock_acquire, &sliding_window_acquire};
  CHECK(is(script_of({lock}), joiner.step(slot_lock_acquire, {}), "slot_lock_acquire"));
  CHECK(is(script_of({lock}, true), joiner.plan(std::array{&slot_lock_acquire}, true, {}),
           "idempotent_plan"));
  CHECK(is(script_of({lock, bucket}), joiner.plan(fixed, false, {}), "fixed_plan"));
  CHECK(is(script_of({lock, windows}), joiner.plan(mixed, false, {}), "plan"));
  CHECK(is(script_of({lock, windows}, true), joiner.plan(mixed, true, {}), "idempotent_plan"));
  CHECK(is(script_of({lock, lock}), joiner.plan(std::array{&slot_lock_acquire}, false, {}),
           "fixed_plan"));
}

TEST_CASE("a script has the windows of its steps", "[scripts]") {
  const auto counts_of = [](const std::vector<std::size_t>& windows) {
    std::vector<Step> steps;
    for (const std::size_t each : windows) steps.push_back(step_with(sliding_window_acquire, each));
    const std::string& text = script_of(steps).text;
    return std::pair(count(text, "== 39 + 16 * 1 then"), count(text, "== 39 + 16 * 2 then"));
  };
  using Counts = std::pair<std::size_t, std::size_t>;
  CHECK(counts_of({1}) == Counts(1, 0));
  CHECK(counts_of({2}) == Counts(0, 1));
  CHECK(counts_of({2, 1}) == Counts(1, 1));
  CHECK(counts_of({2, 2}) == Counts(0, 1));
  CHECK(counts_of({3}) == Counts(0, 0));
  CHECK(counts_of({0, 8, 9}) == Counts(0, 0));
  CHECK(&script_of({step_with(sliding_window_acquire, 1)}) !=
        &script_of({step_with(sliding_window_acquire, 3)}));
}

TEST_CASE("the steps' order, number and arguments ask for no other script", "[scripts]") {
  const Step lock = step_with(slot_lock_acquire);
  const Step one = step_with(sliding_window_acquire, 1);
  const Step none = step_with(sliding_window_acquire);
  CHECK(&script_of({lock, one}) == &script_of({one, lock, lock}));
  CHECK(&script_of({one, one}) == &script_of({none, one}));
  CHECK(&script_of({lock, lock}) != &script_of({lock, one}));
  CHECK(&script_of({lock, lock}) != &script_of({lock}));
  CHECK(&script_of({lock, lock}) != &script_of({lock}, true));
  CHECK(&script_of({lock, lock}, true) == &script_of({lock}, true));
}

TEST_CASE("threads that ask for the script of the same operations get the same one", "[scripts]") {
  const auto rows = operations();
  using Scripts = std::vector<const Script*>;
  std::array<Scripts, 8> found;
  found.fill(Scripts(rows.size()));
  const auto ask_all = [&](Scripts& scripts, std::size_t first) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t row = (first + i) % rows.size();
      scripts[row] = &script_of({step_with(*rows[row]), step_with(slot_lock_acquire)}, true);
    }
  };
  {
    std::atomic<std::size_t> ready{0};
    std::vector<std::jthread> threads;  // behind what they use
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < found.size()) std::this_thread::yield();
        ask_all(found[i], i / 4 * 20);  // four threads the same, and four another
      });
    }
  }
  CHECK(std::ranges::count(found, found[0]) == 8);
  CHECK(std::set<const Script*>(found[0].begin(), found[0].end()).size() == rows.size());
}
