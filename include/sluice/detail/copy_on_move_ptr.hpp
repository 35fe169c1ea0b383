// What objects keep when they are moved from. Threading: as std::shared_ptr.
#pragma once

#include <memory>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// A shared_ptr that is copied where others are moved, so that it is never null again.
template <class T>
class CopyOnMovePtr : public std::shared_ptr<T> {
 public:
  CopyOnMovePtr() = default;
  CopyOnMovePtr(std::shared_ptr<T> from) noexcept  // NOLINT(google-explicit-constructor): it is one
      : std::shared_ptr<T>(std::move(from)) {}
  CopyOnMovePtr(const CopyOnMovePtr&) noexcept = default;
  CopyOnMovePtr& operator=(const CopyOnMovePtr&) noexcept = default;
  ~CopyOnMovePtr() = default;
};

}  // namespace sluice::detail
