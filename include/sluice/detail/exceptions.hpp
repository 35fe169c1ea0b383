// Throwing and catching for public headers, which contain no `throw` and no `try`, so that they
// also compile under -fno-exceptions; see docs/platforms.md.
#pragma once

#include <stdexcept>
#include <system_error>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// Throw the exception.
[[noreturn]] void raise(const std::system_error& error);
[[noreturn]] void raise(const std::invalid_argument& error);

/// Calls `function(context)`; std::bad_alloc becomes an error.
void call_within_memory(void (*function)(const void* context), const void* context,
                        std::error_code& error) noexcept;

template <class Function>
void call_within_memory(const Function& function, std::error_code& error) noexcept {
  const auto call = [](const void* context) { (*static_cast<const Function*>(context))(); };
  call_within_memory(call, &function, error);
}

}  // namespace sluice::detail
