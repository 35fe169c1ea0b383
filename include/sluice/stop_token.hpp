// Stop tokens, with which callers cancel waits: those of the standard library, or Sluice's own
// where it has none (libc++ without -fexperimental-library). See docs/platforms.md.
#pragma once

#include <version>

#include "sluice/detail/cxx20.hpp"

#ifdef __cpp_lib_jthread

#include <stop_token>

namespace sluice {
using StopSource = std::stop_source;
using StopToken = std::stop_token;
template <class Function>
using StopCallback = std::stop_callback<Function>;
}  // namespace sluice

#else

#include "sluice/detail/own_stop_token.hpp"

namespace sluice {
using StopSource = detail::OwnStopSource;
using StopToken = detail::OwnStopToken;
template <class Function>
using StopCallback = detail::OwnStopCallback<Function>;
}  // namespace sluice

#endif
