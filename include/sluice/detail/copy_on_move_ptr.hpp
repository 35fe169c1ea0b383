// CopyOnMovePtr: for members that a moved-from object still needs. Threading: as std::shared_ptr.
#pragma once

#include <memory>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// A shared_ptr whose move copies, so that a moved-from owner stays valid.
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
