// How a test asks a call for its error, and a constructor for what it says of a wrong value.
// Threading: plain functions.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "tests/catch.hpp"

namespace sluice::test {

/// What `call` leaves in the error code that it is given.
std::error_code error_of(const auto& call) {
  std::error_code error;
  static_cast<void>(call(error));
  return error;
}

/// What the exception says that `call` ends in.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Whether a message names this; checks it.
inline bool names(const std::string& message, std::string_view part) {
  INFO(message);
  CHECK(message.find(part) != std::string::npos);
  return message.find(part) != std::string::npos;
}

}  // namespace sluice::test
