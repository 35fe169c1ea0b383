// UninitializedArray: storage for a bounded number of objects, of which most calls need few:
// initialising all would take longer than the call. Threading: as the objects.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <type_traits>

namespace sluice::detail {

/// Storage for `size` objects, none of which exists before it is made.
template <class T, std::size_t size>
class UninitializedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  /// Constructs an object from the result of `make()`, without a copy.
  template <class Make>
  T& make(std::size_t index, const Make& make) noexcept {
    return *::new (static_cast<void*>(data() + index)) T(make());
  }
  /// Constructs an object by default initialisation.
  T& make(std::size_t index) noexcept { return *::new (static_cast<void*>(data() + index)) T; }
  [[nodiscard]] T* data() noexcept { return reinterpret_cast<T*>(bytes_.data()); }
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(bytes_.data()); }
  /// REQUIRES: the object was made.
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return data()[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return data()[index]; }

 private:
  alignas(T) std::array<std::byte, size * sizeof(T)> bytes_;
};

}  // namespace sluice::detail
