// The memory of a table, and how slots change hands when it is full.
#include "backends/memory/table.hpp"

#include <algorithm>
#include <new>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#define SLUICE_HAS_MMAP 1
#endif

namespace sluice::memory {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

#if !defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
std::atomic<bool>& spin_of(const void* cell) noexcept {
  static std::array<std::atomic<bool>, 256> spins;
  return spins[reinterpret_cast<std::uintptr_t>(cell) / sizeof(Cell) % spins.size()];
}
#endif

std::size_t Table::slots_for(std::size_t keys) noexcept {
  // Three quarters more than keys: most keys are in the first line of their sequence, and of a
  // million hardly one finds it full. A run may start in the last line, so the lines behind it are
  // there too.
  const std::size_t even = (keys + keys / 4 * 3 + keys % 4 * 3 / 4 + 1) / 2 * 2;
  return std::max<std::size_t>(even, 2) + run_slots - 2;
}

Table::Table(std::size_t keys)
    : slots_(slots_for(keys)),
      homes_((slots_ - run_slots) / 2 + 1),
      memory_(allocate(slots_ * sizeof(Slot))) {}

#if defined(SLUICE_HAS_MMAP)

std::unique_ptr<Slot[], Table::Unmap> Table::allocate(std::size_t bytes) {
  // Pages of zeros that take memory only when they are touched: an empty slot is all zeros. A large
  // table starts at a huge page's boundary, which saves most misses of the address cache.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t kept = (bytes + page - 1) / page * page;
  const std::size_t slack = bytes >= huge_page ? huge_page : 0;
  void* const start =
      mmap(nullptr, kept + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  auto* first = static_cast<std::byte*>(start);
  if (slack != 0) {
    const std::size_t skip = -reinterpret_cast<std::uintptr_t>(first) % huge_page;
    if (skip != 0) munmap(first, skip);
    first += skip;
    if (skip != slack) munmap(first + kept, slack - skip);
#if defined(MADV_HUGEPAGE)
    madvise(first, kept, MADV_HUGEPAGE);  // advice: the table works without
#endif
  }
  return {reinterpret_cast<Slot*>(first), Unmap{kept}};
}

void Table::Unmap::operator()(Slot* memory) const noexcept { munmap(memory, bytes); }

#else

std::unique_ptr<Slot[], Table::Unmap> Table::allocate(std::size_t bytes) {
  return {new (std::align_val_t{64}) Slot[bytes / sizeof(Slot)](), Unmap{bytes}};
}

void Table::Unmap::operator()(Slot* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{64});
}

#endif

bool Table::has_idle(const Mark& mark, std::int64_t now) const noexcept {
  bool idle = false;
  walk(mark, [&](const Slot& slot) noexcept {
    const Slot::Snapshot seen = slot.snapshot();
    const Quarter until = Slot::idle_at(seen.identity.high);
    idle = !state::is_special(seen.state) && until != never && until <= now;
    return idle;
  });
  return idle;
}

Slot* Table::take_over(const Mark& mark, const StateWords& initial, Quarter idle_at,
                       std::int64_t now) noexcept {
  Slot* won = nullptr;
  walk(mark, [&](Slot& slot) noexcept {
    // The state is read before idle-at, which is raised before a state that needs it is written:
    // so if the exchange finds this state still there, idle-at was judged rightly.
    Slot::Snapshot seen = slot.snapshot();
    if (state::is_special(seen.state)) return false;
    const Quarter until = Slot::idle_at(seen.identity.high);
    if (until == never || until > now) return false;
    const std::uint64_t next = state::generation(seen.state) + 1;
    Pair dead = state::make(state::dead, 0, next);
    if (!slot.state.exchange(seen.state, dead)) return false;
    // Dead: the slot is this thread's. Others see a state that is nobody's, or the new owner's.
    slot.identity.publish({mark.low(), mark.high(idle_at)});
    slot.state.exchange(dead, state::make(initial, next + 1));
    won = &slot;
    return true;
  });
  return won;
}

}  // namespace sluice::memory
