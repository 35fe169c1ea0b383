// Lasting: a static object that is never destroyed. Static objects of the program, and threads that
// it does not join, may use a store while it exits, after objects that were made later are gone.
#pragma once

#include <utility>

namespace sluice::detail {

/// `static const Lasting<T> kept(...)`: `kept.object` lives as long as the process.
template <class T>
union Lasting {
  template <class... Args>
  explicit Lasting(Args&&... args) : object(std::forward<Args>(args)...) {}
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;
  ~Lasting() {}  // NOLINT(modernize-use-equals-default): it would be deleted

  T object;
};

}  // namespace sluice::detail
