// How a call that throws is made of the one that fills an error_code. Threading: a function of its
// arguments alone.
#pragma once

#include <system_error>

#include "sluice/decide.hpp"
#include "sluice/detail/exceptions.hpp"

namespace sluice::detail {

/// What `call(error)` answers; an error is thrown as that of the call `name`, about the step that
/// `asked()` makes.
template <class Asked, class Call>
auto or_throw(const CallName& name, Asked asked, Call call) {
  std::error_code error;
  auto result = call(error);
  if (error) raise(failed_call(name, error, asked()));
  return result;
}

}  // namespace sluice::detail
