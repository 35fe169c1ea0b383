// Pages from the system, or from the heap where there is no mmap.
#include "backends/memory/pages.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#define SLUICE_HAS_MMAP 1
#endif

namespace sluice::memory {

#if defined(SLUICE_HAS_MMAP)

Pages::Pages(std::size_t bytes) {
  if (bytes == 0) return;
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = (bytes + page - 1) / page * page;
  const std::size_t slack = bytes >= huge_page ? huge_page : 0;
  // Not counted as committed memory, because most of it may never be used.
  start_ = mmap(nullptr, bytes_ + slack, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start_ == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(start_);
  if (slack != 0) {
    const std::size_t skip = -reinterpret_cast<std::uintptr_t>(data_) % huge_page;
    if (skip != 0) munmap(data_, skip);
    data_ += skip;
    if (skip != slack) munmap(data_ + bytes_, slack - skip);
#if defined(MADV_HUGEPAGE)
    madvise(data_, bytes_, MADV_HUGEPAGE);  // advice only
#endif
  }
  start_ = data_;
}

Pages::~Pages() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

#else

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  constexpr std::size_t line = 64;
  start_ = std::calloc(bytes + line, 1);
  if (start_ == nullptr) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(start_) + -reinterpret_cast<std::uintptr_t>(start_) % line;
}

Pages::~Pages() { std::free(start_); }

#endif

}  // namespace sluice::memory
