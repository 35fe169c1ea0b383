// How Lua files become scripts, and what is wrong in them: sheets of small files, with the exact
// text or refusal. Threading: single-threaded.
#include <functional>
#include <stdexcept>

#include "backends/redis/scripts/script_constants.hpp"
#include "backends/redis/scripts/script_joiner.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/wait_line.hpp"
#include "tests/catch.hpp"
#include "tests/redis/sheet.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::find_constant;
using redis_detail::LuaFile;
using redis_detail::ScriptJoiner;
using WindowCounts = ScriptJoiner::WindowCounts;
using Texts = std::vector<std::string>;
using Operations = std::span<const Operation* const>;

namespace {

const std::vector<const Operation*> known{&slot_lock_acquire, &sliding_window_acquire};
const Operations both = known;

const std::string lock_section =
    "@operation slot_lock_acquire(next, stamp | limit, interval, max_wait)~return next";
const std::string windows_section =
    "@operation sliding_window_acquire(head[11] | limit, cost, max_wait, longest)~return head";

/// `~` ends a line, and `@` is `--@ `, unless it has its dashes.
std::string lua(const std::string& text) {
  return replaced(replaced(replaced(text, "@", "--@ "), "----@ ", "--@"), "~", "\n");
}

/// What is made of files, each "name: text". Of the script, `~` stands between the lines; of a
/// refusal, `!` stands in front.
std::string made(const Texts& files, Operations operations,
                 const std::function<std::string(const ScriptJoiner&)>& make) {
  Texts texts;
  std::vector<LuaFile> all;
  for (const std::string& file : files) {
    texts.push_back(lua(file.substr(file.find(": ") + 2)));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    all.push_back({std::string_view(files[i]).substr(0, files[i].find(": ")), texts[i]});
  }
  try {
    std::string text = make(ScriptJoiner(all, operations));
    if (text.ends_with('\n')) text.pop_back();
    return replaced(text, "\n", "~");
  } catch (const std::logic_error& error) {
    return "!" + std::string(error.what());
  }
}

/// Both operations, a fixed and a variable one, and `more`.
Texts with_rules(Texts more) {
  more.push_back("rules/slot_lock.lua: " + lock_section);
  more.push_back("rules/sliding_window.lua: " + windows_section);
  return more;
}

/// The script of one step whose driver has these lines; files stand behind `%`.
std::string step_of(std::string_view lines, const Operation& operation = slot_lock_acquire,
                    WindowCounts windows = {}) {
  Texts files = parts_of(lines, " % ");
  files[0] = "step.lua: @piece step~" + files[0];
  return made(with_rules(files), known,
              [&](const ScriptJoiner& joiner) { return joiner.step(operation, windows); });
}

/// The script of a plan whose driver has these lines.
std::string plan_of(std::string_view lines, Operations operations, bool has_record = false,
                    WindowCounts windows = {}) {
  Texts files = parts_of(lines, " % ");
  files[0] = "plan.lua: @piece plan~" + files[0];
  return made(with_rules(files), known, [&](const ScriptJoiner& joiner) {
    return joiner.plan(operations, has_record, windows);
  });
}

/// Why a file with this text is refused.
std::string refusal_of(const std::string& text, Operations operations = known) {
  return made({"some.lua: " + text}, operations, [](const auto&) { return std::string(); });
}

/// Rows of `lines => script`, of a fixed operation, and of a variable one if another one follows.
void check(const std::string& sheet) {
  for (const Texts& row : rows_of(sheet)) {
    CAPTURE(row[0]);
    CHECK(step_of(row[0]) == row[1]);
    if (row.size() > 2) CHECK(step_of(row[0], sliding_window_acquire) == row[2]);
  }
}

/// Lines that name each flag of which they are joined.
std::string flag_lines() {
  std::string lines;
  for (const std::string flag :
       {"script", "fixed", "variable", "fast", "fast_plan", "output", "table", "record"}) {
    lines += "@if " + flag + "~" + flag + "~@end~";
  }
  return lines;
}

}  // namespace

TEST_CASE("pieces, blocks, repeats and lists become their lines", "[scripts]") {
  check(R"rows(
# A piece may be used again behind itself, and by several pieces, with the variables of its user.
@use a~@use b~@use a % a.lua: @piece a~a()~@piece b~@use a~b() => a()~a()~b()~a()
@repeat n = 1..2~@use p~@end % p.lua: @piece p~@repeat k = 1..$n~a($n, $k)~@end
  => a(1, 1)~a(2, 1)~a(2, 2)
# An if takes its lines or those behind else, which belongs to the innermost if.
a()~@if fixed~b()~@else~c()~d()~@end~e()~@if table~f()~@end~g()
  => a()~b()~e()~g() => a()~c()~d()~e()~f()~g()
@if fixed~@end~@if table~@else~@end =>
@if fixed~@if table~a()~@else~b()~@end~c()~@else~@if table~d()~@else~e()~@end~f()~@end
  => b()~c() => d()~f()
@if table~@if fixed~a()~@else~b()~@end~@end =>
# Lines that are left out may hold what cannot be joined.
@if table~@use missing~a$k = Errc.missing~@else~b()~@end => b()
# A repeat has its lines once for each number.
a()~@repeat k = 2..4~local b$k = $k~c()~@end~d()
  => a()~local b2 = 2~c()~local b3 = 3~c()~local b4 = 4~c()~d()
@repeat k = 3..3~a$k()~@end => a3()
@repeat k = 2..1~a$k()~@end =>
# An inner one may end where the outer one is, and leaves its variables as they were.
@repeat n = 1..3~a($n)~@repeat k = 2..$n~b$n($k)~@end~c$n()~@end
  => a(1)~c1()~a(2)~b2(2)~c2()~a(3)~b3(2)~b3(3)~c3()
@repeat n = 1..2~@repeat k = $n..1$n~@end~a$n~@end => a1~a2
@repeat k = 1..2~@repeat k = 5..5~a$k()~@end~b$k()~@end => a5()~b1()~a5()~b2()
# Blocks stand within each other.
@repeat k = 1..2~@if fixed~a$k()~@else~b$k()~@end~c$k()~@end
  => a1()~c1()~a2()~c2() => b1()~c1()~b2()~c2()
@if fixed~@repeat k = 1..2~a$k()~@end~@else~@repeat k = 3..4~b$k()~@end~c()~@end
  => a1()~a2() => b3()~b4()~c()
# A list has its text once for each number, within the line.
@repeat n = 2..3~read('<B$n[LL]')~@end => read('<BLLLL')~read('<BLLLLLL')
@repeat n = 2..3~f($n[a$k, ]$n$n[; b$k + $n])~@end
  => f(a1, a2, 2; b1 + 2; b2 + 2)~f(a1, a2, a3, 3; b1 + 3; b2 + 3; b3 + 3)
@repeat n = 2..3~f($n[])~@end => f()~f()
@repeat n = 0..0~f($n[a$k])~@end => f()
@repeat n = 2..2~@repeat k = 1..2~f($n[a$k], $k)~@end~@end => f(a1a2, 1)~f(a1a2, 2)
@repeat k = 3..3~f($k[a$k])~@end => f(a1a2a3)
# decide() and fast() stand where the driver wants them.
a()~@decide~b()
  => a()~local function decide(message, position, now, next, stamp)~local limit, interval, max_wait
  = struct.unpack('<i8i8i8', message, position)~return next~end~b()
  => a()~local function decide(message, position, now, head)~local limit, cost, max_wait, longest
  = struct.unpack('<i8i8i8i8', message, position)~return head~end~b()
@if fast~@fast~@end~a() % fast.lua: @fast sliding_window_acquire~return Operation.head
  => a() => local function fast(message, position, now, key, seen)~return 11~end~a()
)rows");
  const auto windows = [](const std::string& range, unsigned long counts) {
    return step_of("@repeat n = windows " + range + "~a$n()~@end", slot_lock_acquire,
                   WindowCounts(counts));
  };
  CHECK(windows("1..2", 0b110) == "a1()~a2()");
  CHECK(windows("1..2", 0b010) == "a1()");
  CHECK(windows("1..2", 0b100) == "a2()");
  CHECK(windows("1..2", 0b1'0000'1001).empty());
  CHECK(windows("1..8", 0b1'0000'1001) == "a3()~a8()");
  CHECK(plan_of("@repeat n = windows 1..2~a$n()~@end", both, false, WindowCounts(4)) == "a2()");
}

TEST_CASE("a constant stands for its number, and words that only look like one are left alone",
          "[scripts]") {
  check(R"rows(
a = word_limit => a = 4503599627370496
return Errc.invalid_cost, Errc.wrong_kind => return -2, -16
redis.call('PSETEX', key, 'IdempotencyRecord.ttl') => redis.call('PSETEX', key, '661000')
a = 'b'..word_limit, b[1]..Errc.wrong_kind => a = 'b'..4503599627370496, b[1]..-16
b = c..Errc.wrong_kind..1..word_limit => b = c..-16..1..4503599627370496
if a>word_limit/2 or -word_limit==a then b={Errc.id_reused}end
  => if a>4503599627370496/2 or -4503599627370496==a then b={-43}end
# Operation.x is of the operation in hand.
a = {Operation.id, Operation.kind, Operation.argument_count, Operation.output, Operation.head}
  => a = {40, 8, 3, 0, 0} => a = {68, 26, 4, 3, 11}
@use p % p.lua: @piece p~a = Operation.id => a = 40
# Rule.x is of the file in which it stands, whatever uses it.
@use own~@use tiers % rules/leases.lua: @piece life~local life = Rule.min_ttl
  % fast/utilization.v2.lua: @piece tiers~local tiers = Rule.max_tiers
  % gate.lua: @piece own~@use life~local cap = Rule.max_cap
  => local life = 1000~local cap = 31536000000000~local tiers = 65535
)rows");
  const std::string lines =
      "redis.call('GET', KEYS[1])~string.rep('x', 2)~my_word_limit = word_limits~"
      "word_limit_ = a.word_limit~Errc = Rule~myErrc.invalid_cost = errc.x~"
      "a.Errc.invalid_cost = 1.5~_Rule.x = WORDS~x = 'a.b' .. ARGV[1]";
  CHECK(step_of(lines) == lines);
}

TEST_CASE("every number of script_constants.hpp is found by its whole name alone", "[scripts]") {
  const std::map<std::string_view, Word> numbers{{"word_limit", word_limit},
                                                 {"Errc.corrupt_state", -17},
                                                 {"IdempotencyRecord.kind", 12},
                                                 {"IdempotencyRecord.kept_for", 600'000'000},
                                                 {"leases.min_ttl", LeasesRule::min_ttl},
                                                 {"leases.max_ttl", LeasesRule::max_ttl},
                                                 {"wait_line.min_ttl", WaitLineRule::min_ttl},
                                                 {"sliding_window.max_windows", 8}};
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

TEST_CASE("comments, empty lines, indentation and spaces between words do not matter",
          "[scripts]") {
  CHECK(step_of("-- A comment.~  -- Another, of $k.~~   ~--@use nothing~--~"
                "  a()   -- of Errc.missing~    @if fixed -- and more -- and more~"
                "      b(-1)--c  ~  @end~local x = 1 - -2~@use p -- used~last()"
                " % p.lua: @piece p -- a piece~p()") == "a()~b(-1)--c~local x = 1 - -2~p()~last()");
  const auto lock = [](const ScriptJoiner& joiner) { return joiner.step(slot_lock_acquire, {}); };
  CHECK(made({"step.lua: @piece  step~@decide",
              "lock.lua:   @operation  slot_lock_acquire ( a,b|  c,d  ,e )"},
             known, lock) ==
        "local function decide(message, position, now, a, b)~"
        "local c, d, e = struct.unpack('<i8i8i8', message, position)~end");
}

TEST_CASE("operations and plans have their flags", "[scripts]") {
  const std::vector<const Operation*> all{&slot_lock_acquire, &sliding_window_acquire,
                                          &leases_acquire};
  const auto flags = [&](const Operation& operation) {
    return made(with_rules({"leases.lua: @operation leases_acquire(head[11] | a, b, c, d, e, f, g, "
                            "h)~@fast leases_acquire",
                            "step.lua: @piece step~" + flag_lines()}),
                all, [&](const ScriptJoiner& joiner) { return joiner.step(operation, {}); });
  };
  CHECK(flags(slot_lock_acquire) == "script~fixed");
  CHECK(flags(sliding_window_acquire) == "script~variable~output~table");
  CHECK(flags(leases_acquire) == "script~variable~fast~output");
  const std::string lines = flag_lines();
  const std::string fast = lines + " % fast.lua: @fast_plan slot_lock_acquire";
  CHECK(plan_of(lines, both.first(1)) == "script~fixed");
  CHECK(plan_of(lines, both.last(1)) == "script~variable");
  CHECK(plan_of(lines, both, true) == "script~fixed~variable~record");
  CHECK(plan_of(fast, both.first(1)) == "script~fixed~fast_plan");
  CHECK(plan_of(fast, both.first(1), true) == "script~fixed~record");
  CHECK(plan_of(fast, both) == "script~fixed~variable");
}

TEST_CASE("a plan has the functions of its operations, by their ids, and its fast path",
          "[scripts]") {
  CHECK(plan_of("@operations~a() % fast.lua: @fast sliding_window_acquire~return Operation.id",
                both) == replaced(R"(if id == 40 then
local function decide(message, position, now, next, stamp)
local limit, interval, max_wait = struct.unpack('<i8i8i8', message, position)
return next
end
return 8, 3, 0, nil, decide
end
if id == 68 then
local function decide(message, position, now, head)
local limit, cost, max_wait, longest = struct.unpack('<i8i8i8i8', message, position)
return head
end
local function fast(message, position, now, key, seen)
return 68
end
return 26, 4, 259, 11, decide, fast
end
a())",
                                  "\n", "~"));
  const std::string fast =
      "@fast_plan~b() % fast.lua: @fast_plan slot_lock_acquire~if a then return Operation.id end";
  CHECK(plan_of(fast, both.first(1)) == "if a then return 40 end~b()");
  CHECK(plan_of(fast, both.last(1)) == "b()");
}

TEST_CASE("a library makes the functions of an operation once, and registers them by its prefix",
          "[scripts]") {
  const Texts files{"step.lua: @piece step~return Operation.id~" + flag_lines(),
                    "plan.lua: @piece plan~@repeat n = windows 1..8~w$n()~@end~" + flag_lines() +
                        "@if fast_plan~@fast_plan~@end",
                    "f.lua: @fast sliding_window_acquire~return 1~@fast_plan slot_lock_acquire~"
                    "return Operation.kind",
                    "w.lua: @piece variable_step~local key~@piece words~local limit"};
  const std::string windows = "\nw1()\nw2()\nw3()\nw4()\nw5()\nw6()\nw7()\nw8()\n";
  CHECK(made(with_rules(files), known,
             [](const ScriptJoiner& joiner) { return joiner.library("sluice_x"); }) ==
        replaced(replaced(R"(local key
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
redis.register_function('sluice_x_fixed_plan', function(KEYS, ARGV)WINDOWSfixed
fast_plan
return 8
end)
redis.register_function('sluice_x_plan', function(KEYS, ARGV)WINDOWSfixed
variable
end)
redis.register_function('sluice_x_idempotent_plan', function(KEYS, ARGV)WINDOWSfixed
variable
record
end))",
                          "WINDOWS", windows),
                 "\n", "~"));
}

TEST_CASE("a joiner has the operations of its files and no other", "[scripts]") {
  const std::string text = lua(lock_section);
  const ScriptJoiner joiner(std::vector<LuaFile>{{"lock.lua", text}}, operations());
  CHECK(joiner.has(slot_lock_acquire));
  CHECK_FALSE(joiner.has(slot_lock_peek));
  const Operation twin = slot_lock_acquire;
  CHECK_FALSE(joiner.has(twin));
  CHECK(ScriptJoiner::stem_of(twin) == "slot_lock_acquire");
}

TEST_CASE("a file that is wrong is refused with its name and the section", "[scripts]") {
  const std::string front = "!some.lua: code in front of the first section: ";
  CHECK(refusal_of("~  local a = 1 -- one~@piece p") == front + "\"local a = 1\"");
  CHECK(refusal_of("@use p") == front + "\"--@ use p\"");
  CHECK(refusal_of("~-- A comment.~   ~@piece p").empty());

  for (const std::string section :
       {"piece p", "fast slot_lock_acquire", "fast_plan slot_lock_acquire"}) {
    const std::string once = lock_section + "~@" + section;
    CHECK(refusal_of(once + "~return 1~@" + section) ==
          "!some.lua: a second section \"" + section + '"');
    CHECK(refusal_of(once).empty());
  }
  CHECK_THAT(made({"one.lua: " + lock_section, "two.lua: " + lock_section}, known,
                  [](const auto&) { return std::string(); }),
             contains_text("two.lua: a second section \"operation slot_lock_acquire("));
  CHECK(refusal_of(lock_section + "~@piece slot_lock_acquire~@fast slot_lock_acquire").empty());

  for (const std::string shape :
       {"slot_lock_acquire(next, stamp, limit)", "slot_lock_acquire next, stamp | limit)",
        "slot_lock_acquire(next, stamp | limit", "slot_lock_acquire | (next, stamp)",
        "slot_lock_acquire"}) {
    CHECK(refusal_of("@operation " + shape) ==
          "!some.lua: expected \"operation name(state | arguments)\", got \"operation " + shape +
              '"');
  }
  for (const std::string state : {"head[0]", "head[33]", "head[-1]", "head[]", "head[x]", "head[1",
                                  "first", "a, b, c", "", "head[1]", "head[32]"}) {
    const std::string operation =
        "operation sliding_window_acquire(" + state + " | limit, cost, max_wait, longest)";
    const bool is_good = state == "head[1]" || state == "head[32]";
    CHECK(refusal_of("@" + operation) ==
          (is_good
               ? ""
               : "!some.lua: a state is head[1] to head[32], or two words: \"" + operation + '"'));
  }
  const auto unknown = [](const std::string& name) {
    return "!some.lua: there is no operation \"" + name + '"';
  };
  for (const std::string section : {"operation slot_lock_grab(next, stamp | limit)",
                                    "fast slot_lock_grab", "fast_plan slot_lock_grab"}) {
    CHECK(refusal_of("@" + section, operations()) == unknown("slot_lock_grab"));
  }
  CHECK(refusal_of("@fast slot_lock_acquire") == unknown("slot_lock_acquire"));
  const std::string peek = "@operation slot_lock_peek(next, stamp | limit, interval, wait)";
  CHECK(refusal_of(peek, operations()).empty());
  CHECK(refusal_of(peek) == unknown("slot_lock_peek"));

  CHECK(refusal_of("@operation slot_lock_acquire(next, stamp | limit, interval)") ==
        "!some.lua: slot_lock_acquire has 3 arguments, not 2");
  CHECK(refusal_of("@operation slot_lock_acquire(next, stamp | a, b, c, d)") ==
        "!some.lua: slot_lock_acquire has 3 arguments, not 4");
  CHECK(refusal_of("@operation sliding_window_acquire(head[11] | )") ==
        "!some.lua: sliding_window_acquire has 4 arguments, not 0");
  CHECK(refusal_of("@operation slot_lock_acquire(head[2] | limit, interval, max_wait)") ==
        "!some.lua: slot_lock_acquire is of the other form of state");
  CHECK(refusal_of("@operation sliding_window_acquire(a, b | limit, cost, wait, longest)") ==
        "!some.lua: sliding_window_acquire is of the other form of state");
}

TEST_CASE("lines that cannot be joined are refused as they stand, with their file", "[scripts]") {
  check(R"rows(
@use view => !step.lua: there is no piece "view"
@use view % view.lua: @piece view~@use clock => !view.lua: there is no piece "clock"
@use one % one.lua: @piece one~@use one => !one.lua: the piece "one" uses itself
@use two % two.lua: @piece two~@use three % three.lua: @piece three~@use two
  => !two.lua: the piece "two" uses itself
@use step => !step.lua: the piece "step" uses itself
# A block has an end, and an if has a flag that there is, and one else.
@if fixed~a() => !step.lua: no end of "if fixed"
@if fixed~@else => !step.lua: no end of "if fixed"
@repeat k = 1..2~@if fixed~@end => !step.lua: no end of "repeat k = 1..2"
@if fixed~@use open~@end % open.lua: @piece open~@if script~@piece next~@end
  => !open.lua: no end of "if script"
@if fxied~a()~@end => !step.lua: there is no flag "fxied"
@if table~@else~@else~@end => !step.lua: a second else of "if table"
# A repeat is k = 1..n.
@repeat k~@end => !step.lua: expected "repeat k = 1..n", got "repeat k"
@repeat k = 1~@end => !step.lua: expected "repeat k = 1..n", got "repeat k = 1"
@repeat k=1..2~@end => !step.lua: expected "repeat k = 1..n", got "repeat k=1..2"
@repeat 1..2~@end => !step.lua: expected "repeat k = 1..n", got "repeat 1..2"
@repeat k = ~@end => !step.lua: expected "repeat k = 1..n", got "repeat k ="
@repeat k = 1..2~a()~@else~b()~@end => !step.lua: an else in "repeat k = 1..2"
@repeat k = windows 0..2~@end => !step.lua: steps have 1 to 8 windows: "repeat k = windows 0..2"
@repeat k = windows 1..9~@end => !step.lua: steps have 1 to 8 windows: "repeat k = windows 1..9"
# A variable is one of the repeats around it, and a list has its bracket.
local x$j = 1 => !step.lua: no variable "$j": "local x$j = 1"
cost = $ => !step.lua: no variable "$": "cost = $"
@repeat k = 1..2~a$k()~@end~b$k() => !step.lua: no variable "$k": "b$k()"
@repeat n = 1..2~a($n[b$k])~b$k()~@end => !step.lua: no variable "$k": "b$k()"
@repeat n = 1..2~a$nth()~@end => !step.lua: no variable "$nth": "a$nth()"
@repeat k = 1..$n~@end => !step.lua: no variable "$n": "k = 1..$n"
@repeat n = 1..2~local a$n[, b~@end => !step.lua: no ] behind "$n[, b"
# A constant is refused by its full name.
a = Rule.max_ahead => !step.lua: no constant "step.max_ahead"
@use p % rules/leases.lua: @piece p~a = Rule.max_cap
  => !rules/leases.lua: no constant "leases.max_cap"
@fast => !step.lua: slot_lock_acquire has no fast path
)rows");
  for (const std::string range : {"x..2", "1..x", "1..", "..2", "1..2x", "1...2", "windows..2",
                                  "windows x..2", "window 1..2", "1..99999999999"}) {
    CHECK(step_of("@repeat k = " + range + "~@end") ==
          "!step.lua: no range of numbers: \"repeat k = " + range + '"');
  }
  for (const std::string name : {"Errc.no_such", "Errc.x.y", "Operation.name", "Operation.id.x",
                                 "IdempotencyRecord.no_such", "Record.kind", "A.b"}) {
    CHECK(step_of("a = " + name) == "!step.lua: no constant \"" + name + '"');
  }
  for (const std::string instruction :
       {"frobnicate", "use", "if", "repeat", "else", "end", "decide now", "user clock", "ends"}) {
    CHECK(step_of("@" + instruction) == "!step.lua: no instruction: \"" + instruction + '"');
  }
}

TEST_CASE("what is of an operation is for drivers that have one in hand", "[scripts]") {
  for (const std::string instruction : {"decide", "fast"}) {
    CHECK(plan_of("@" + instruction, both.first(1)) ==
          "!plan.lua: no instruction: \"" + instruction + '"');
  }
  const Operation* const gate = &gate_open;
  for (const std::string instruction : {"decide", "fast", "fast_plan", "operations"}) {
    CHECK(made({"gate.lua: @operation gate_open(until_, mark | limit)~@" + instruction,
                "step.lua: @piece step~@decide"},
               {&gate, 1}, [&](const ScriptJoiner& joiner) { return joiner.step(*gate, {}); }) ==
          "!gate.lua: no instruction: \"" + instruction + '"');
  }
  const std::string refusal = "!plan.lua: no constant \"Operation.";
  CHECK(plan_of("a = Operation.kind", both) == refusal + "kind\"");
  CHECK(plan_of("@operations~a = Operation.id", both) == refusal + "id\"");
  CHECK(plan_of("@fast_plan~a = Operation.id % fast.lua: @fast_plan slot_lock_acquire~"
                "b = Operation.id",
                both) == refusal + "id\"");
}
