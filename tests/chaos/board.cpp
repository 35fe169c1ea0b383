#include "tests/chaos/board.hpp"

#include <sys/mman.h>

#include <chrono>
#include <new>

namespace sluice::chaos {

std::int64_t now_us() noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Tally::note_decision(std::size_t group, std::int64_t at) noexcept {
  constexpr std::int64_t shortest = 20'000;
  ++decided;
  const std::int64_t before = last_decision[group].exchange(at);
  if (before != 0 && at - before >= shortest) gaps[group].add({before, at});
}

void* map_shared(std::size_t size) {
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void unmap_shared(void* memory, std::size_t size) noexcept { ::munmap(memory, size); }

}  // namespace sluice::chaos
