// The files of planted bugs: what may stand in them, and that they cover the Lua files. Whether
// each bug is caught is seen by mutation_test.cpp. Threading: single-threaded.
#include "tests/twin/mutants.hpp"

#include <functional>

#include "tests/catch.hpp"

using namespace sluice::test;

namespace {

/// What std::runtime_error says; empty if nothing was thrown.
std::string refusal_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

std::string refusal_of_text(std::string_view text) {
  return refusal_of([&] { static_cast<void>(parse_mutants("gate.txt", text)); });
}

const LuaFiles files{
    {"rules/gate.lua", "--@ piece a\n  one()\n  two()\n--@ operation b(x | y)\n  one()\n"},
    {"fast/gate.lua", "--@ fast b\nfast()\n"},
    {"rules/lock.lua", "--@ piece c\nc()\n"}};

/// The files with the only bug of this text.
LuaFiles planted(std::string_view text) {
  const auto mutants = parse_mutants("gate.txt", text);
  REQUIRE(mutants.size() == 1);
  return plant(files, mutants[0]);
}

}  // namespace

TEST_CASE("a bug is a line below its section", "[mutants]") {
  const auto mutants =
      parse_mutants("gate.txt",
                    "# of the gate\n\npiece a\n  no ramp: x and y =>\n\n"
                    "    lines: if\\n  x => '\\\\0'\nkernel src/a.cpp\n  k: 1 => 2");
  REQUIRE(mutants.size() == 3);
  CHECK(mutants[0].section == "piece a");
  CHECK(mutants[0].name == "no ramp");
  CHECK(mutants[0].from == "x and y");
  CHECK(mutants[0].to.empty());
  CHECK(mutants[0].line == 4);
  CHECK(mutants[0].kernel().empty());
  CHECK(mutants[1].from == "if\nx");
  CHECK(mutants[1].to == "'\\0'");
  CHECK(mutants[2].kernel() == "src/a.cpp");
}

TEST_CASE("a malformed file is refused with its name, the line and what is allowed", "[mutants]") {
  CHECK(refusal_of_text("\n  a: b => c\n") == "gate.txt:2: no section above \"a: b => c\"");
  for (const std::string line : {"gate_view", "section a", "piece", "piece a b", "a: b => c"}) {
    CHECK(refusal_of_text(line + "\n") ==
          "gate.txt:1: expected piece, operation, fast, fast_plan or kernel with one name, or an "
          "indented bug, got \"" +
              line + '"');
  }
  for (const std::string line : {"b => c", "a: b", "a => b: c", "a: b => c => d"}) {
    CHECK(refusal_of_text("piece a\n  " + line + "\n") ==
          "gate.txt:2: expected \"name: code => code\", got \"" + line + '"');
  }
  CHECK(refusal_of_text("piece a\n  a: => c\n") == "gate.txt:2: no code to replace: \"a: => c\"");
  CHECK(refusal_of_text("piece a\n  a: b => b\n") == "gate.txt:2: changes nothing: \"a: b => b\"");
  CHECK(refusal_of_text("piece a\n  a: \\0 => c\n") ==
        "gate.txt:2: \"\\0\" is no escape: allowed are \\n and \\\\");
  CHECK(refusal_of_text("piece a\n  a: b => c\\") ==
        "gate.txt:2: \"\\\" is no escape: allowed are \\n and \\\\");
  CHECK(refusal_of_text("piece a\npiece b\npiece a\n") ==
        "gate.txt:3: a second section \"piece a\"");
}

TEST_CASE("a bug is planted in its section alone, whatever the indentation", "[mutants]") {
  CHECK(planted("piece a\n  a: one()\\ntwo() => three()\n").at("rules/gate.lua") ==
        "--@ piece a\nthree()\n--@ operation b(x | y)\n  one()\n");
  CHECK(planted("operation b\n  a: one() =>\n").at("rules/gate.lua") ==
        "--@ piece a\n  one()\n  two()\n--@ operation b(x | y)\n\n");
  CHECK(planted("fast b\n  a: fast() => slow()\n").at("fast/gate.lua") == "--@ fast b\nslow()\n");
}

TEST_CASE("a bug that cannot be planted is refused with its file and line", "[mutants]") {
  CHECK(refusal_of([] { planted("piece c\n  a: c() => d()\n"); }) ==
        "gate.txt:2: gate.lua has no section \"piece c\" but: fast b, piece a, operation b");
  CHECK(refusal_of([] { planted("piece a\n  a: three() => d()\n"); }) ==
        "gate.txt:2: must stand exactly once in \"piece a\": \"three()\"");
  CHECK(refusal_of([] { planted("piece a\n  a: () => d()\n"); }) ==
        "gate.txt:2: must stand exactly once in \"piece a\": \"()\"");
  const auto mutants = parse_mutants("gate.txt", "kernel src/rules/none.cpp\n  a: b => c\n");
  CHECK(refusal_of([&] { static_cast<void>(plant_in_kernel(mutants[0])); }) ==
        "cannot read src/rules/none.cpp");
}

TEST_CASE("a section without a bug is named with its file", "[mutants]") {
  const auto mutants = parse_mutants("gate.txt", "piece a\n  a: one() =>\nfast b\n");
  CHECK(unplanted(files, mutants) == std::vector<std::string>{"fast/gate.lua: fast b",
                                                              "rules/gate.lua: operation b",
                                                              "rules/lock.lua: piece c"});
}

TEST_CASE("every section of the Lua files has a bug, and every bug can be planted", "[mutants]") {
  const LuaFiles real = read_lua_files();
  const auto mutants = read_mutants();
  CHECK(unplanted(real, mutants).empty());
  std::size_t kernels = 0;
  for (const Mutant& mutant : mutants) {
    const bool is_kernel = !mutant.kernel().empty();
    kernels += is_kernel ? 1 : 0;
    CHECK_NOTHROW(is_kernel ? static_cast<void>(plant_in_kernel(mutant))
                            : static_cast<void>(plant(real, mutant)));
  }
  CHECK(kernels > 0);
}
