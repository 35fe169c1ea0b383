// How Lua files become scripts, and what is wrong in them: small files in memory, with the exact
// text or refusal. Threading: single-threaded.
#include <functional>
#include <stdexcept>

#include "backends/redis/scripts/script_constants.hpp"
#include "backends/redis/scripts/script_joiner.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/rules/wait_line.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::find_constant;
using redis_detail::LuaFile;
using redis_detail::ScriptJoiner;
using WindowCounts = ScriptJoiner::WindowCounts;
using Files = std::vector<LuaFile>;

namespace {

const std::vector<const Operation*> known{&slot_lock_acquire, &sliding_window_acquire};

constexpr std::string_view lock_line =
    "--@ operation slot_lock_acquire(next, stamp | limit, interval, max_wait)\n";
constexpr std::string_view windows_line =
    "--@ operation sliding_window_acquire(head[11] | limit, cost, max_wait, longest)\n";

/// Both operations, a fixed and a variable one, and `more`.
ScriptJoiner joiner_of(Files more) {
  static const std::string lock = std::string(lock_line) + "return next\n";
  static const std::string windows = std::string(windows_line) + "return head\n";
  more.push_back({"rules/slot_lock.lua", lock});
  more.push_back({"rules/sliding_window.lua", windows});
  return {more, known};
}

/// The script of one step whose driver has these lines.
std::string step_of(const std::string& lines, Files more = {},
                    const Operation& operation = slot_lock_acquire, WindowCounts windows = {}) {
  const std::string driver = "--@ piece step\n" + lines;
  more.push_back({"step.lua", driver});
  return joiner_of(std::move(more)).step(operation, windows);
}

/// The script of a plan whose driver has these lines.
std::string plan_of(const std::string& lines, std::span<const Operation* const> operations,
                    bool has_record = false, Files more = {}) {
  const std::string driver = "--@ piece plan\n" + lines;
  more.push_back({"plan.lua", driver});
  return joiner_of(std::move(more)).plan(operations, has_record, {});
}

/// Lines that name each flag of which they are joined.
std::string flag_lines() {
  std::string lines;
  for (const std::string flag :
       {"script", "fixed", "variable", "fast", "fast_plan", "output", "table", "record"}) {
    lines += "--@ if " + flag + "\n" + flag + "\n--@ end\n";
  }
  return lines;
}

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

TEST_CASE("a piece may be used again behind itself, and by several pieces", "[scripts]") {
  const Files files{{"a.lua", "--@ piece a\na()\n--@ piece b\n--@ use a\nb()\n"}};
  CHECK(step_of("--@ use a\n--@ use b\n--@ use a\n", files) == "a()\na()\nb()\na()\n");
}

TEST_CASE("a list and an inner repeat leave the variables of the outer one as they were",
          "[scripts]") {
  CHECK(step_of("--@ repeat n = 2..2\n--@ repeat k = 1..2\nf($n[a$k], $k)\n--@ end\n--@ end\n") ==
        "f(a1a2, 1)\nf(a1a2, 2)\n");
  CHECK(step_of("--@ repeat k = 1..2\n--@ repeat k = 5..5\na$k()\n--@ end\nb$k()\n--@ end\n") ==
        "a5()\nb1()\na5()\nb2()\n");
  CHECK(step_of("--@ repeat k = 3..3\nf($k[a$k])\n--@ end\n") == "f(a1a2a3)\n");
}

TEST_CASE("a constant may stand beside two dots", "[scripts]") {
  CHECK(step_of("b = c..Errc.wrong_kind..1..word_limit\n") == "b = c..-16..1..4503599627370496\n");
}

TEST_CASE("an if takes its lines or those behind else", "[scripts]") {
  const std::string lines =
      "a()\n--@ if fixed\nb()\n--@ else\nc()\nd()\n--@ end\ne()\n--@ if table\nf()\n--@ end\ng()\n";
  CHECK(step_of(lines) == "a()\nb()\ne()\ng()\n");
  CHECK(step_of(lines, {}, sliding_window_acquire) == "a()\nc()\nd()\ne()\nf()\ng()\n");
  CHECK(step_of("--@ if fixed\n--@ end\n--@ if table\n--@ else\n--@ end\n").empty());
}

TEST_CASE("an else belongs to the innermost if", "[scripts]") {
  const std::string lines =
      "--@ if fixed\n--@ if table\na()\n--@ else\nb()\n--@ end\nc()\n"
      "--@ else\n--@ if table\nd()\n--@ else\ne()\n--@ end\nf()\n--@ end\n";
  CHECK(step_of(lines) == "b()\nc()\n");
  CHECK(step_of(lines, {}, sliding_window_acquire) == "d()\nf()\n");
  CHECK(step_of("--@ if table\n--@ if fixed\na()\n--@ else\nb()\n--@ end\n--@ end\n").empty());
}

TEST_CASE("lines that are left out may hold what cannot be joined", "[scripts]") {
  CHECK(step_of("--@ if table\n--@ use missing\na$k = Errc.missing\n--@ else\nb()\n--@ end\n") ==
        "b()\n");
}

TEST_CASE("each kind of operation has its flags", "[scripts]") {
  const std::vector<const Operation*> all{&slot_lock_acquire, &sliding_window_acquire,
                                          &leases_acquire};
  const std::string driver = "--@ piece step\n" + flag_lines();
  const Files files{{"lock.lua", lock_line},
                    {"windows.lua", windows_line},
                    {"leases.lua",
                     "--@ operation leases_acquire(head[11] | a, b, c, d, e, f, g, h)\n"
                     "--@ fast leases_acquire\n"},
                    {"step.lua", driver}};
  const ScriptJoiner joiner(files, all);
  CHECK(joiner.step(slot_lock_acquire, {}) == "script\nfixed\n");
  CHECK(joiner.step(sliding_window_acquire, {}) == "script\nvariable\noutput\ntable\n");
  CHECK(joiner.step(leases_acquire, {}) == "script\nvariable\nfast\noutput\n");
}

TEST_CASE("a plan has the flags of all its operations, and its own", "[scripts]") {
  const std::string lines = flag_lines();
  const Files fast{{"fast.lua", "--@ fast_plan slot_lock_acquire\n"}};
  const std::span<const Operation* const> both = known;
  const auto lock = both.first(1);
  CHECK(plan_of(lines, lock) == "script\nfixed\n");
  CHECK(plan_of(lines, both.last(1)) == "script\nvariable\n");
  CHECK(plan_of(lines, both, true) == "script\nfixed\nvariable\nrecord\n");
  CHECK(plan_of(lines, lock, false, fast) == "script\nfixed\nfast_plan\n");
  CHECK(plan_of(lines, lock, true, fast) == "script\nfixed\nrecord\n");
  CHECK(plan_of(lines, both, false, fast) == "script\nfixed\nvariable\n");
}

TEST_CASE("a repeat has its lines once for each number", "[scripts]") {
  CHECK(step_of("a()\n--@ repeat k = 2..4\nlocal b$k = $k\nc()\n--@ end\nd()\n") ==
        "a()\nlocal b2 = 2\nc()\nlocal b3 = 3\nc()\nlocal b4 = 4\nc()\nd()\n");
  CHECK(step_of("--@ repeat k = 3..3\na$k()\n--@ end\n") == "a3()\n");
  CHECK(step_of("--@ repeat k = 2..1\na$k()\n--@ end\n").empty());
}

TEST_CASE("an inner repeat may end where the outer one is", "[scripts]") {
  CHECK(step_of("--@ repeat n = 1..3\na($n)\n--@ repeat k = 2..$n\nb$n($k)\n--@ end\nc$n()\n"
                "--@ end\n") == "a(1)\nc1()\na(2)\nb2(2)\nc2()\na(3)\nb3(2)\nb3(3)\nc3()\n");
  CHECK(step_of("--@ repeat n = 1..2\n--@ repeat k = $n..1$n\n--@ end\na$n\n--@ end\n") ==
        "a1\na2\n");
}

TEST_CASE("blocks stand within each other", "[scripts]") {
  const std::string in_repeat =
      "--@ repeat k = 1..2\n--@ if fixed\na$k()\n--@ else\nb$k()\n--@ end\nc$k()\n--@ end\n";
  CHECK(step_of(in_repeat) == "a1()\nc1()\na2()\nc2()\n");
  CHECK(step_of(in_repeat, {}, sliding_window_acquire) == "b1()\nc1()\nb2()\nc2()\n");
  const std::string in_if =
      "--@ if fixed\n--@ repeat k = 1..2\na$k()\n--@ end\n--@ else\n"
      "--@ repeat k = 3..4\nb$k()\n--@ end\nc()\n--@ end\n";
  CHECK(step_of(in_if) == "a1()\na2()\n");
  CHECK(step_of(in_if, {}, sliding_window_acquire) == "b3()\nb4()\nc()\n");
}

TEST_CASE("a piece has the variables of the line that uses it", "[scripts]") {
  CHECK(step_of("--@ repeat n = 1..2\n--@ use p\n--@ end\n",
                {{"p.lua", "--@ piece p\n--@ repeat k = 1..$n\na($n, $k)\n--@ end\n"}}) ==
        "a(1, 1)\na(2, 1)\na(2, 2)\n");
}

TEST_CASE("a repeat of windows takes the numbers that steps have", "[scripts]") {
  const auto joined = [](const std::string& range, unsigned long counts) {
    return step_of("--@ repeat n = windows " + range + "\na$n()\n--@ end\n", {}, slot_lock_acquire,
                   WindowCounts(counts));
  };
  CHECK(joined("1..2", 0b110) == "a1()\na2()\n");
  CHECK(joined("1..2", 0b010) == "a1()\n");
  CHECK(joined("1..2", 0b100) == "a2()\n");
  CHECK(joined("1..2", 0b1'0000'1001).empty());
  CHECK(joined("1..8", 0b1'0000'1001) == "a3()\na8()\n");
  const auto* const lock = &slot_lock_acquire;
  const Files files{{"plan.lua", "--@ piece plan\n--@ repeat n = windows 1..2\na$n()\n--@ end\n"}};
  CHECK(joiner_of(files).plan({&lock, 1}, false, WindowCounts(0b100)) == "a2()\n");
}

TEST_CASE("a list has its text once for each number, within the line", "[scripts]") {
  const auto joined = [](const std::string& line) {
    return step_of("--@ repeat n = 2..3\n" + line + "\n--@ end\n");
  };
  CHECK(joined("read('<B$n[LL]')") == "read('<BLLLL')\nread('<BLLLLLL')\n");
  CHECK(joined("f($n[a$k, ]$n$n[; b$k + $n])") ==
        "f(a1, a2, 2; b1 + 2; b2 + 2)\nf(a1, a2, a3, 3; b1 + 3; b2 + 3; b3 + 3)\n");
  CHECK(joined("f($n[])") == "f()\nf()\n");
  CHECK(step_of("--@ repeat n = 0..0\nf($n[a$k])\n--@ end\n") == "f()\n");
}

TEST_CASE("a constant stands for its number", "[scripts]") {
  CHECK(step_of("a = word_limit\n") == "a = 4503599627370496\n");
  CHECK(step_of("return Errc.invalid_cost, Errc.wrong_kind\n") == "return -2, -16\n");
  CHECK(step_of("redis.call('PSETEX', key, 'IdempotencyRecord.ttl')\n") ==
        "redis.call('PSETEX', key, '661000')\n");
  CHECK(step_of("a = 'b'..word_limit, b[1]..Errc.wrong_kind\n") ==
        "a = 'b'..4503599627370496, b[1]..-16\n");
  CHECK(step_of("if a>word_limit/2 or -word_limit==a then b={Errc.id_reused}end\n") ==
        "if a>4503599627370496/2 or -4503599627370496==a then b={-43}end\n");
}

TEST_CASE("words that only look like constants are left alone", "[scripts]") {
  const std::string lines =
      "redis.call('GET', KEYS[1])\nstring.rep('x', 2)\nmy_word_limit = word_limits\n"
      "word_limit_ = a.word_limit\nErrc = Rule\nmyErrc.invalid_cost = errc.x\n"
      "a.Errc.invalid_cost = 1.5\n_Rule.x = WORDS\nx = 'a.b' .. ARGV[1]\n";
  CHECK(step_of(lines) == lines);
}

TEST_CASE("Rule.x is of the file in which it stands, whatever uses it", "[scripts]") {
  const Files files{{"rules/leases.lua", "--@ piece life\nlocal life = Rule.max_ttl\n"},
                    {"fast/utilization.v2.lua", "--@ piece tiers\nlocal tiers = Rule.max_tiers\n"},
                    {"gate.lua", "--@ piece own\n--@ use life\nlocal cap = Rule.max_cap\n"}};
  const auto local = [](std::string_view name, Word value) {
    return "local " + std::string(name) + " = " + std::to_string(value) + "\n";
  };
  CHECK(step_of("--@ use own\n--@ use tiers\n", files) ==
        local("life", LeasesRule::max_ttl) + local("cap", GateRule::max_cap) +
            local("tiers", UtilizationRule::max_tiers));
}

TEST_CASE("Operation.x is of the operation in hand", "[scripts]") {
  const std::string lines =
      "a = {Operation.id, Operation.kind, Operation.argument_count, Operation.output, "
      "Operation.head}\n";
  CHECK(step_of(lines) == "a = {40, 8, 3, 0, 0}\n");
  CHECK(step_of(lines, {}, sliding_window_acquire) == "a = {68, 26, 4, 3, 11}\n");
  CHECK(step_of("--@ use p\n", {{"p.lua", "--@ piece p\na = Operation.id\n"}}) == "a = 40\n");
}

TEST_CASE("every number of script_constants.hpp is found by its whole name alone", "[scripts]") {
  const std::map<std::string_view, Word> numbers{
      {"word_limit", word_limit},
      {"Errc.corrupt_state", -17},
      {"IdempotencyRecord.kind", 12},
      {"IdempotencyRecord.kept_for", 600'000'000},
      {"leases.min_ttl", LeasesRule::min_ttl},
      {"leases.max_ttl", LeasesRule::max_ttl},
      {"wait_line.min_ttl", WaitLineRule::min_ttl},
      {"sliding_window.max_windows", 8},
  };
  for (const auto& [name, value] : numbers) {
    CAPTURE(name);
    const Word* const found = find_constant(name);
    REQUIRE(found != nullptr);
    CHECK(*found == value);
  }
  for (const std::string_view name :
       {"", "word_limi", "word_limits", "Word_limit", "Errc", "errc.wrong_kind", "Errc.wrong_kind ",
        "Errc.no_script", "Rule.max_ttl", "max_ttl", "leases.max_tt"}) {
    CAPTURE(name);
    CHECK(find_constant(name) == nullptr);
  }
}

TEST_CASE("comments, empty lines and indentation are dropped", "[scripts]") {
  CHECK(step_of("-- A comment.\n  -- Another, of $k.\n\n   \n--@use nothing\n--\n"
                "  a()   -- of Errc.missing\n    --@ if fixed -- and more -- and more\n"
                "      b(-1)--c  \n  --@ end\nlocal x = 1 - -2\n--@ use p -- used\nlast()",
                {{"p.lua", "--@ piece p -- a piece\np()"}}) ==
        "a()\nb(-1)--c\nlocal x = 1 - -2\np()\nlast()\n");
}

TEST_CASE("decide() reads the state and the arguments, and stands where the driver wants it",
          "[scripts]") {
  CHECK(step_of("a()\n--@ decide\nb()\n") ==
        "a()\n"
        "local function decide(message, position, now, next, stamp)\n"
        "local limit, interval, max_wait = struct.unpack('<i8i8i8', message, position)\n"
        "return next\n"
        "end\n"
        "b()\n");
  CHECK(step_of("--@ decide\n", {}, sliding_window_acquire) ==
        "local function decide(message, position, now, head)\n"
        "local limit, cost, max_wait, longest = "
        "struct.unpack('<i8i8i8i8', message, position)\n"
        "return head\n"
        "end\n");
}

TEST_CASE("spaces between the words of an operation do not matter", "[scripts]") {
  const Files files{{"step.lua", "--@ piece  step\n--@ decide\n"},
                    {"lock.lua", "  --@ operation  slot_lock_acquire ( a,b|  c,d  ,e )\n"}};
  CHECK(ScriptJoiner(files, known).step(slot_lock_acquire, {}) ==
        "local function decide(message, position, now, a, b)\n"
        "local c, d, e = struct.unpack('<i8i8i8', message, position)\n"
        "end\n");
}

TEST_CASE("fast() stands where the driver wants it", "[scripts]") {
  CHECK(step_of("--@ if fast\n--@ fast\n--@ end\na()\n",
                {{"fast.lua", "--@ fast sliding_window_acquire\nreturn Operation.head\n"}},
                sliding_window_acquire) ==
        "local function fast(message, position, now, key, seen)\nreturn 11\nend\na()\n");
}

TEST_CASE("a plan has the functions of its operations, by their ids", "[scripts]") {
  CHECK(plan_of("--@ operations\na()\n", known, false,
                {{"fast.lua", "--@ fast sliding_window_acquire\nreturn Operation.id\n"}}) ==
        "if id == 40 then\n"
        "local function decide(message, position, now, next, stamp)\n"
        "local limit, interval, max_wait = struct.unpack('<i8i8i8', message, position)\n"
        "return next\n"
        "end\n"
        "return 8, 3, 0, nil, decide\n"
        "end\n"
        "if id == 68 then\n"
        "local function decide(message, position, now, head)\n"
        "local limit, cost, max_wait, longest = "
        "struct.unpack('<i8i8i8i8', message, position)\n"
        "return head\n"
        "end\n"
        "local function fast(message, position, now, key, seen)\n"
        "return 68\n"
        "end\n"
        "return 26, 4, 259, 11, decide, fast\n"
        "end\n"
        "a()\n");
}

TEST_CASE("a plan has the fast paths of its operations", "[scripts]") {
  const Files files{
      {"fast.lua", "--@ fast_plan slot_lock_acquire\nif a then return Operation.id end\n"}};
  const std::span<const Operation* const> both = known;
  CHECK(plan_of("--@ fast_plan\nb()\n", both.first(1), false, files) ==
        "if a then return 40 end\nb()\n");
  CHECK(plan_of("--@ fast_plan\nb()\n", both.last(1), false, files) == "b()\n");
}

TEST_CASE("a library makes the functions of an operation once, and registers them by its prefix",
          "[scripts]") {
  const std::string step = "--@ piece step\nreturn Operation.id\n" + flag_lines();
  const std::string plan = "--@ piece plan\n--@ repeat n = windows 1..8\nw$n()\n--@ end\n" +
                           flag_lines() + "--@ if fast_plan\n--@ fast_plan\n--@ end\n";
  const std::string fast = std::string("--@ fast sliding_window_acquire\nreturn 1\n") +
                           "--@ fast_plan slot_lock_acquire\nreturn Operation.kind\n";
  const std::string words = "--@ piece variable_step\nlocal key\n--@ piece words\nlocal limit\n";
  const Files files{{"step.lua", step}, {"plan.lua", plan}, {"f.lua", fast}, {"w.lua", words}};
  CHECK(joiner_of(files).library("sluice_x") == R"(local key
local limit
local operations = {}
do
local function decide(message, position, now, next, stamp)
local limit, interval, max_wait = struct.unpack('<i8i8i8', message, position)
return next
end
operations[40] = {8, 3, 0, nil, decide}
redis.register_function('sluice_x_slot_lock_acquire', function(KEYS, ARGV)
return 40
fixed
end)
end
do
local function decide(message, position, now, head)
local limit, cost, max_wait, longest = struct.unpack('<i8i8i8i8', message, position)
return head
end
local function fast(message, position, now, key, seen)
return 1
end
operations[68] = {26, 4, 259, 11, decide, fast}
redis.register_function('sluice_x_sliding_window_acquire', function(KEYS, ARGV)
return 68
variable
fast
output
table
end)
end
local function operation(id)
return unpack(operations[id], 1, 6)
end
redis.register_function('sluice_x_fixed_plan', function(KEYS, ARGV)
w1()
w2()
w3()
w4()
w5()
w6()
w7()
w8()
fixed
fast_plan
return 8
end)
redis.register_function('sluice_x_plan', function(KEYS, ARGV)
w1()
w2()
w3()
w4()
w5()
w6()
w7()
w8()
fixed
variable
end)
redis.register_function('sluice_x_idempotent_plan', function(KEYS, ARGV)
w1()
w2()
w3()
w4()
w5()
w6()
w7()
w8()
fixed
variable
record
end)
)");
}

TEST_CASE("a joiner has the operations of its files and no other", "[scripts]") {
  const Files files{{"lock.lua", lock_line}};
  const ScriptJoiner joiner(files, operations());
  CHECK(joiner.has(slot_lock_acquire));
  CHECK_FALSE(joiner.has(slot_lock_peek));
  const Operation twin = slot_lock_acquire;
  CHECK_FALSE(joiner.has(twin));
  CHECK(ScriptJoiner::stem_of(twin) == "slot_lock_acquire");
}

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
