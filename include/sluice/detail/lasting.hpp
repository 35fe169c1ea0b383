// What objects keep when they are moved from. Threading: as std::shared_ptr.
#pragma once

#include <memory>
#include <utility>

namespace sluice::detail {

/// A shared_ptr that is copied where others are moved, so that it is never null again.
template <class T>
class Lasting : public std::shared_ptr<T> {
 public:
  Lasting() = default;
  Lasting(std::shared_ptr<T> from) noexcept  // NOLINT(google-explicit-constructor): it is one
      : std::shared_ptr<T>(std::move(from)) {}
  Lasting(const Lasting&) noexcept = default;
  Lasting& operator=(const Lasting&) noexcept = default;
  ~Lasting() = default;
};

}  // namespace sluice::detail
