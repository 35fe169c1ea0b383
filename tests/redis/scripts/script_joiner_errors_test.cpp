// What is wrong in Lua files: small files in memory, with the exact refusal. Threading:
// single-threaded.

#include <functional>
#include <stdexcept>

#include "sluice/rules/gate.hpp"
#include "tests/catch.hpp"
#include "tests/redis/scripts/joining.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// What std::logic_error says; empty if nothing was thrown.
std::string refusal_of(const std::function<void()>& join) {
  try {
    join();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return {};
}

/// Why a file with this text is refused.
std::string refusal_of_file(const std::string& text,
                            std::span<const Operation* const> operations = known) {
  const Files files{{"some.lua", text}};
  return refusal_of([&] { const ScriptJoiner joiner(files, operations); });
}

/// Why a driver with these lines cannot be joined.
std::string refusal_of_step(const std::string& lines, const Files& more = {},
                            const Operation& operation = slot_lock_acquire) {
  return refusal_of([&] { static_cast<void>(step_of(lines, more, operation)); });
}

}  // namespace

TEST_CASE("code in front of the first section is refused with the file's name and the line",
          "[scripts]") {
  CHECK(refusal_of_file("\n  local a = 1 -- one\n--@ piece p\n") ==
        "some.lua: code in front of the first section: \"local a = 1\"");
  CHECK(refusal_of_file("--@ use p\n") ==
        "some.lua: code in front of the first section: \"--@ use p\"");
  CHECK(refusal_of_file("\n-- A comment.\n   \n--@ piece p\n").empty());
}

TEST_CASE("a second section of the same kind and name is refused, in whichever file it stands",
          "[scripts]") {
  const std::string lock(lock_line);
  for (const std::string section :
       {"piece p", "fast slot_lock_acquire", "fast_plan slot_lock_acquire"}) {
    const std::string line = "--@ " + section + "\n";
    CHECK(refusal_of_file(lock + line + "return 1\n" + line) ==
          "some.lua: a second section \"" + section + '"');
    CHECK(refusal_of_file(lock + line).empty());
  }
  const Files files{{"one.lua", lock_line}, {"two.lua", lock_line}};
  CHECK_THAT(refusal_of([&] { const ScriptJoiner joiner(files, known); }),
             contains_text("two.lua: a second section \"operation slot_lock_acquire("));
  CHECK(
      refusal_of_file(lock + "--@ piece slot_lock_acquire\n--@ fast slot_lock_acquire\n").empty());
}

TEST_CASE("a section of an operation that is not name(state | arguments) is refused as it stands",
          "[scripts]") {
  for (const std::string shape :
       {"slot_lock_acquire(next, stamp, limit)", "slot_lock_acquire next, stamp | limit)",
        "slot_lock_acquire(next, stamp | limit", "slot_lock_acquire | (next, stamp)",
        "slot_lock_acquire"}) {
    CHECK(refusal_of_file("--@ operation " + shape + "\n") ==
          "some.lua: expected \"operation name(state | arguments)\", got \"operation " + shape +
              '"');
  }
}

TEST_CASE("a state is a head of 1 to 32 words or two names", "[scripts]") {
  const auto refusal = [](const std::string& state) {
    return refusal_of_file("--@ operation sliding_window_acquire(" + state +
                           " | limit, cost, max_wait, longest)\n");
  };
  for (const std::string state :
       {"head[0]", "head[33]", "head[-1]", "head[]", "head[x]", "head[1", "first", "a, b, c", ""}) {
    CHECK(refusal(state) ==
          "some.lua: a state is head[1] to head[32], or two words: "
          "\"operation sliding_window_acquire(" +
              state + " | limit, cost, max_wait, longest)\"");
  }
  CHECK(refusal("head[1]").empty());
  CHECK(refusal("head[32]").empty());
}

TEST_CASE("a section of an operation that is not in the table is refused by its name",
          "[scripts]") {
  CHECK(refusal_of_file("--@ operation slot_lock_grab(next, stamp | limit)\n", operations()) ==
        "some.lua: there is no operation \"slot_lock_grab\"");
  CHECK(refusal_of_file("--@ fast slot_lock_grab\n", operations()) ==
        "some.lua: there is no operation \"slot_lock_grab\"");
  CHECK(refusal_of_file("--@ fast_plan slot_lock_grab\n", operations()) ==
        "some.lua: there is no operation \"slot_lock_grab\"");
  CHECK(refusal_of_file("--@ fast slot_lock_acquire\n") ==
        "some.lua: there is no operation \"slot_lock_acquire\"");
  const std::string peek = "--@ operation slot_lock_peek(next, stamp | limit, interval, wait)\n";
  CHECK(refusal_of_file(peek, operations()).empty());
  CHECK(refusal_of_file(peek) == "some.lua: there is no operation \"slot_lock_peek\"");
}

TEST_CASE("a section of an operation has as many arguments as the table says", "[scripts]") {
  CHECK(refusal_of_file("--@ operation slot_lock_acquire(next, stamp | limit, interval)\n") ==
        "some.lua: slot_lock_acquire has 3 arguments, not 2");
  CHECK(refusal_of_file("--@ operation slot_lock_acquire(next, stamp | a, b, c, d)\n") ==
        "some.lua: slot_lock_acquire has 3 arguments, not 4");
  CHECK(refusal_of_file("--@ operation sliding_window_acquire(head[11] | )\n") ==
        "some.lua: sliding_window_acquire has 4 arguments, not 0");
}

TEST_CASE("a fixed state is no head, and a variable one is not two words", "[scripts]") {
  CHECK(refusal_of_file("--@ operation slot_lock_acquire(head[2] | limit, interval, max_wait)\n") ==
        "some.lua: slot_lock_acquire is of the other form of state");
  CHECK(refusal_of_file(
            "--@ operation sliding_window_acquire(a, b | limit, cost, wait, longest)\n") ==
        "some.lua: sliding_window_acquire is of the other form of state");
}

TEST_CASE("a piece that is missing is named with the file that uses it", "[scripts]") {
  CHECK(refusal_of_step("--@ use view\n") == "step.lua: there is no piece \"view\"");
  CHECK(refusal_of_step("--@ use view\n", {{"view.lua", "--@ piece view\n--@ use clock\n"}}) ==
        "view.lua: there is no piece \"clock\"");
}

TEST_CASE("a piece that uses itself is refused, also if it does so through another", "[scripts]") {
  const Files files{{"one.lua", "--@ piece one\n--@ use one\n"},
                    {"two.lua", "--@ piece two\n--@ use three\n"},
                    {"three.lua", "--@ piece three\n--@ use two\n"}};
  CHECK(refusal_of_step("--@ use one\n", files) == "one.lua: the piece \"one\" uses itself");
  CHECK(refusal_of_step("--@ use two\n", files) == "two.lua: the piece \"two\" uses itself");
  CHECK(refusal_of_step("--@ use step\n") == "step.lua: the piece \"step\" uses itself");
}

TEST_CASE("an instruction that means nothing is refused as it stands", "[scripts]") {
  for (const std::string instruction :
       {"frobnicate", "use", "if", "repeat", "else", "end", "decide now", "user clock", "ends"}) {
    CHECK(refusal_of_step("--@ " + instruction + "\n") ==
          "step.lua: no instruction: \"" + instruction + '"');
  }
  const auto* const lock = &slot_lock_acquire;
  for (const std::string instruction : {"decide", "fast"}) {  // of no operation in hand
    CHECK(refusal_of([&] {
            static_cast<void>(plan_of("--@ " + instruction + "\n", {&lock, 1}));
          }) == "plan.lua: no instruction: \"" + instruction + '"');
  }
}

TEST_CASE("a block without an end is refused with the line that opens it", "[scripts]") {
  CHECK(refusal_of_step("--@ if fixed\na()\n") == "step.lua: no end of \"if fixed\"");
  CHECK(refusal_of_step("--@ if fixed\n--@ else\n") == "step.lua: no end of \"if fixed\"");
  CHECK(refusal_of_step("--@ repeat k = 1..2\n--@ if fixed\n--@ end\n") ==
        "step.lua: no end of \"repeat k = 1..2\"");
  CHECK(
      refusal_of_step("--@ if fixed\n--@ use open\n--@ end\n",
                      {{"open.lua", "--@ piece open\n--@ if script\n--@ piece next\n--@ end\n"}}) ==
      "open.lua: no end of \"if script\"");
}

TEST_CASE("a repeat is k = 1..n", "[scripts]") {
  for (const std::string range : {"k", "k = 1", "k=1..2", "1..2", "k = "}) {
    CHECK(refusal_of_step("--@ repeat " + range + "\n--@ end\n") ==
          "step.lua: expected \"repeat k = 1..n\", got \"repeat " +
              range.substr(0, range.find_last_not_of(' ') + 1) + '"');
  }
  CHECK(refusal_of_step("--@ repeat k = 1..2\na()\n--@ else\nb()\n--@ end\n") ==
        "step.lua: an else in \"repeat k = 1..2\"");
  for (const std::string range : {"windows 0..2", "windows 1..9"}) {
    CHECK(refusal_of_step("--@ repeat k = " + range + "\n--@ end\n") ==
          "step.lua: steps have 1 to 8 windows: \"repeat k = " + range + '"');
  }
}

TEST_CASE("an if has a flag that there is, and one else", "[scripts]") {
  CHECK(refusal_of_step("--@ if fxied\na()\n--@ end\n") == "step.lua: there is no flag \"fxied\"");
  CHECK(refusal_of_step("--@ if table\n--@ else\n--@ else\n--@ end\n") ==
        "step.lua: a second else of \"if table\"");
}

TEST_CASE("what stands for an operation's code is for drivers, and for code that there is",
          "[scripts]") {
  CHECK(refusal_of_step("--@ fast\n") == "step.lua: slot_lock_acquire has no fast path");
  const Operation* const gate = &gate_open;
  for (const std::string instruction : {"decide", "fast", "fast_plan", "operations"}) {
    const std::string body = "--@ operation gate_open(until_, mark | limit)\n--@ " + instruction;
    const Files files{{"gate.lua", body}, {"step.lua", "--@ piece step\n--@ decide\n"}};
    CHECK(refusal_of([&] {
            static_cast<void>(ScriptJoiner(files, {&gate, 1}).step(*gate, {}));
          }) == "gate.lua: no instruction: \"" + instruction + '"');
  }
}

TEST_CASE("the range of a repeat is two numbers", "[scripts]") {
  for (const std::string range : {"x..2", "1..x", "1..", "..2", "1..2x", "1...2", "windows..2",
                                  "windows x..2", "window 1..2", "1..99999999999"}) {
    CHECK(refusal_of_step("--@ repeat k = " + range + "\n--@ end\n") ==
          "step.lua: no range of numbers: \"repeat k = " + range + '"');
  }
}

TEST_CASE("an unknown variable is refused with its line", "[scripts]") {
  CHECK(refusal_of_step("local x$j = 1\n") == "step.lua: no variable \"$j\": \"local x$j = 1\"");
  CHECK(refusal_of_step("cost = $\n") == "step.lua: no variable \"$\": \"cost = $\"");
  CHECK(refusal_of_step("--@ repeat k = 1..2\na$k()\n--@ end\nb$k()\n") ==
        "step.lua: no variable \"$k\": \"b$k()\"");
  CHECK(refusal_of_step("--@ repeat n = 1..2\na($n[b$k])\nb$k()\n--@ end\n") ==
        "step.lua: no variable \"$k\": \"b$k()\"");
  CHECK(refusal_of_step("--@ repeat n = 1..2\na$nth()\n--@ end\n") ==
        "step.lua: no variable \"$nth\": \"a$nth()\"");
  CHECK(refusal_of_step("--@ repeat k = 1..$n\n--@ end\n") ==
        "step.lua: no variable \"$n\": \"k = 1..$n\"");
}

TEST_CASE("a list without its bracket is refused", "[scripts]") {
  CHECK(refusal_of_step("--@ repeat n = 1..2\nlocal a$n[, b\n--@ end\n") ==
        "step.lua: no ] behind \"$n[, b\"");
}

TEST_CASE("an unknown constant is refused by its full name", "[scripts]") {
  for (const std::string name : {"Errc.no_such", "Errc.x.y", "Operation.name", "Operation.id.x",
                                 "IdempotencyRecord.no_such", "Record.kind", "A.b"}) {
    CHECK(refusal_of_step("a = " + name + "\n") == "step.lua: no constant \"" + name + '"');
  }
  CHECK(refusal_of_step("a = Rule.max_ahead\n") == "step.lua: no constant \"step.max_ahead\"");
  CHECK(refusal_of_step("--@ use p\n", {{"rules/leases.lua", "--@ piece p\na = Rule.max_cap\n"}}) ==
        "rules/leases.lua: no constant \"leases.max_cap\"");
}

TEST_CASE("the operation's numbers are unknown where none is in hand", "[scripts]") {
  const auto refusal = [](const std::string& lines, const Files& more = {}) {
    return refusal_of([&] { static_cast<void>(plan_of(lines, known, false, more)); });
  };
  CHECK(refusal("a = Operation.kind\n") == "plan.lua: no constant \"Operation.kind\"");
  CHECK(refusal("--@ operations\na = Operation.id\n") == "plan.lua: no constant \"Operation.id\"");
  CHECK(refusal("--@ fast_plan\na = Operation.id\n",
                {{"fast.lua", "--@ fast_plan slot_lock_acquire\nb = Operation.id\n"}}) ==
        "plan.lua: no constant \"Operation.id\"");
}
