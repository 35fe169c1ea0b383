// Scripts of faults. Threading: single-threaded.
#include "sluice/testing/faulty_store.hpp"

#include "src/core/error_names.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

std::string fault_of(std::string_view text) {
  try {
    const FaultScript script(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("each word of a script is one call, in order", "[testing]") {
  FaultScript script(
      "ok ok timeout unknown ok*3 delay(50ms)\n\tnot_connected dropped delay(1.5s,unknown)*2");
  const std::vector<Fault> expected{
      Fault::none(),
      Fault::none(),
      Fault::not_executed(Errc::timed_out),
      Fault::answer_lost(Errc::unknown),
      Fault::none(),
      Fault::none(),
      Fault::none(),
      Fault::none().late(50ms),
      Fault::not_executed(Errc::not_connected),
      Fault::request_lost(),
      Fault::answer_lost().late(1500ms),
      Fault::answer_lost().late(1500ms),
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(script.is_over());
    CHECK(script.next() == expected[i]);
  }
  CHECK(script.is_over());
  CHECK(script.next() == Fault::none());
  CHECK(FaultScript().is_over());
}

TEST_CASE("a word may go on for ever", "[testing]") {
  FaultScript script("ok loading*");
  CHECK(script.next() == Fault::none());
  for (int i = 0; i < 1000; ++i) CHECK(script.next() == Fault::not_executed(Errc::loading));
  CHECK_FALSE(script.is_over());
}

TEST_CASE("an error that leaves it open is executed, any other is not", "[testing]") {
  for (const auto& [code, name] : sluice::detail::error_names()) {
    const Fault fault = FaultScript(name).next();
    CHECK(fault.error == code);
    CHECK(fault.executed == (fault.error == Failure::unknown));
  }
}

TEST_CASE("bad scripts name the column and the reason", "[testing]") {
  const std::string word =
      "expected ok, timeout, unknown, dropped, delay(50ms) or the name of an Errc, got ";
  const std::string times = "expected a number of times, 1 or more, or nothing behind *, got ";
  const std::string length = "expected a length of time such as 50ms, got ";
  const std::vector<std::tuple<const char*, int, std::string>> table{
      {"ok timout", 4, word + "\"timout\""},
      {"*3", 1, word + "nothing more"},
      {"ok, ok", 1, word + "\"ok,\""},
      {"ok*0", 1, times + "\"ok*0\""},
      {"ok  ok*x", 5, times + "\"ok*x\""},
      {"ok*99999999999999999999", 1, times + "\"ok*99999999999999999999\""},
      {"ok* timeout", 5, "expected nothing behind what is repeated for ever, got \"timeout\""},
      {"delay(50)", 1, length + "\"50\""},
      {"delay()", 1, length + "nothing more"},
      {"delay(-1s)", 1, length + "\"-1s\""},
      {"delay(0.1us)", 1, length + "\"0.1us\""},
      {"delay(99999999999h)", 1, length + "\"99999999999h\""},
      {"delay(1s,maybe)", 1, word + "\"maybe\""},
      {"delay(1s,delay(1s))", 1, "expected one delay, got \"delay(1s,delay(1s))\""}};
  for (const auto& [text, column, said] : table) {
    CHECK(fault_of(text) == "fault script, column " + std::to_string(column) + ": " + said);
  }
}

TEST_CASE("any bytes are a script or refused", "[testing]") {
  test::Random random("any bytes are a script or refused");
  CAPTURE(random.repeat());
  constexpr std::string_view bytes = "ok*(),.019 delaytimeunknwsh\n";
  std::size_t good = 0;
  for (std::size_t i = 0; i < test::scaled(20'000, 2'000); ++i) {
    std::string text(random.below(12), ' ');
    for (char& c : text) c = bytes[random.below(bytes.size())];
    const std::string fault = fault_of(text);
    if (fault == "nothing") ++good;
    REQUIRE((fault == "nothing" || fault.find("fault script, column ") == 0));
  }
  CHECK(good > 0);
}
