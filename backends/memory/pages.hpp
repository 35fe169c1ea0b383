// Pages: zeroed memory, reserved at once; the system allocates its pages when they are first used.
// Threading: plain memory.
#pragma once

#include <cstddef>
#include <utility>

namespace sluice::memory {

class Pages {
 public:
  /// Aligned to a cache line, and to a huge page if it is that large, which avoids most TLB misses.
  /// Throws std::bad_alloc. No memory if `bytes` is 0.
  explicit Pages(std::size_t bytes);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  void* start_ = nullptr;  // the allocation, which begins at or before data_
  std::size_t bytes_ = 0;
};

}  // namespace sluice::memory
