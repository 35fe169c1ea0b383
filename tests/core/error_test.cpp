// Error codes: every one has its own text and belongs to one condition. Threading: single-threaded.
#include "sluice/error.hpp"

#include <set>

#include "tests/catch.hpp"

using namespace sluice;

namespace {
constexpr int last_code = static_cast<int>(Errc::other_store);
}

TEST_CASE("every error has a text, and says whether the request may have been executed",
          "[core][error]") {
  std::set<std::string> texts;
  for (int code = 1; code <= last_code; ++code) {
    const std::error_code error = static_cast<Errc>(code);
    const std::string text = error.message();
    INFO(code << ": " << text);
    CHECK(text.size() > 10);
    CHECK(texts.insert(text).second);
    const bool unknown = error == Failure::unknown;
    CHECK(unknown != (error == Failure::not_executed));
    CHECK(unknown ==
          (error == Errc::server_error || error == Errc::unknown || error == Errc::protocol_error));
  }
  const std::string none = "unknown error code";
  CHECK(texts.count(none) == 0);
  CHECK(make_error_code(static_cast<Errc>(0)).message() == none);
  CHECK(make_error_code(static_cast<Errc>(last_code + 1)).message() == none);
  CHECK(std::string(error_category().name()) == "sluice");
  CHECK(std::string(failure_category().name()) == "sluice.failure");
  CHECK(make_error_condition(Failure::unknown).message() !=
        make_error_condition(Failure::not_executed).message());
  CHECK(std::error_code() != Failure::not_executed);
  CHECK(std::make_error_code(std::errc::timed_out) != Failure::unknown);
}

TEST_CASE("the numbers of errors that scripts answer do not change", "[core][error]") {
  CHECK(static_cast<int>(Errc::cost_exceeds_capacity) == 1);
  CHECK(static_cast<int>(Errc::invalid_cost) == 2);
  CHECK(static_cast<int>(Errc::wrong_type) == 15);
  CHECK(static_cast<int>(Errc::wrong_kind) == 16);
  CHECK(static_cast<int>(Errc::corrupt_state) == 17);
}
