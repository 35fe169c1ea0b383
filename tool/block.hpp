// The block of a key, as its own limiter makes it. Threading: any.
#pragma once

#include "sluice/store.hpp"
#include "tool/scan.hpp"

namespace sluice::tool {

/// Blocks the key for this long by the limiter of its kind, made of what its key, its state and
/// Found::given say. Throws std::invalid_argument if the kind has no block, or if more must be
/// known, and std::system_error if the store could not decide.
void block(Store& store, const Found& found, Span span);

}  // namespace sluice::tool
