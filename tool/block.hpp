// The block of a key, as its own limiter makes it. Threading: any.
#pragma once

#include <functional>

#include "sluice/store.hpp"
#include "tool/scan.hpp"

namespace sluice::tool {

/// Blocks the key for this long by the limiter of its kind, made of what its key, its state and
/// Found::given say, if `is_agreed` says so, which is asked of a block that can be made. False: it
/// is not agreed. Throws std::invalid_argument if the kind has no block, or if more must be known,
/// and std::system_error if the store could not decide.
bool block(Store& store, const Found& found, Span span, const std::function<bool()>& is_agreed);

}  // namespace sluice::tool
