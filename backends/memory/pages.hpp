// Memory of zeros, reserved at once; the system gives its pages when they are first touched.
// Threading: plain memory.
#pragma once

#include <cstddef>
#include <utility>

namespace sluice::memory {

class Pages {
 public:
  /// Starts at a cache line, and at a huge page if it is that large, which saves most misses of the
  /// address cache. Throws std::bad_alloc. None if `bytes` is 0.
  explicit Pages(std::size_t bytes);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  void* start_ = nullptr;  // what was allocated: data_ and what lies before it
  std::size_t bytes_ = 0;
};

}  // namespace sluice::memory
