// Allocating, splitting and merging blocks.
#include "backends/memory/blocks.hpp"

#include <bit>
#include <mutex>

namespace sluice::memory {
namespace {

unsigned order_for(std::size_t words) noexcept {
  const std::size_t units = (words + Blocks::unit_words - 1) / Blocks::unit_words;
  return static_cast<unsigned>(std::bit_width(units - 1));
}

}  // namespace

Blocks::Blocks(std::size_t bytes)
    : units_(bytes / (unit_bytes + 1)),  // plus a byte of the map for each unit
      pages_(units_ * (unit_bytes + 1)) {
  lists_.fill(none);
}

BlockId Blocks::take(std::size_t words) noexcept {
  if (words == 0 || words > max_state_words) return 0;
  const unsigned wanted = order_for(words);
  const std::lock_guard lock(lock_);
  const std::size_t unit = find(wanted);
  if (unit == none) return 0;
  used_.fetch_add(std::size_t{1} << wanted, std::memory_order_relaxed);  // statistics
  return (unit + 1) << 5 | wanted;
}

/// A block of this size, split from the smallest free one.
std::size_t Blocks::find(unsigned order) noexcept {
  const std::uint32_t fit = filled_ >> order << order;
  if (fit == 0) return carve(order);
  auto found = static_cast<unsigned>(std::countr_zero(fit));
  const std::size_t unit = lists_[found];
  remove(unit, found);
  while (found > order) {
    --found;
    push(unit + (std::size_t{1} << found), found);
  }
  return unit;
}

/// The same from unused memory: the largest blocks first, at the end smaller ones that still fit.
std::size_t Blocks::carve(unsigned order) noexcept {
  const std::size_t left = units_ - fresh_;
  if (left == 0) return none;
  const auto largest = std::min(orders - 1, static_cast<unsigned>(std::bit_width(left)) - 1);
  if (largest < order) return none;
  const std::size_t unit = fresh_;
  fresh_ += std::size_t{1} << largest;
  for (unsigned half = largest; half > order;) {
    --half;
    push(unit + (std::size_t{1} << half), half);
  }
  return unit;
}

void Blocks::refund(BlockId block) noexcept {
  if (block == 0) return;
  std::size_t at = unit(block);
  unsigned size = order(block);
  const std::lock_guard lock(lock_);
  used_.fetch_sub(std::size_t{1} << size, std::memory_order_relaxed);  // statistics
  // A block starts at a multiple of its size, so that the address of its buddy differs in one bit.
  // Only the map says whether that is a free block of this size.
  for (; size + 1 < orders; ++size) {
    const std::size_t other = at ^ std::size_t{1} << size;
    if (other >= fresh_ || free_at(other) != size + 1) break;
    remove(other, size);
    at &= ~(std::size_t{1} << size);
  }
  push(at, size);
}

void Blocks::push(std::size_t unit, unsigned order) noexcept {
  const std::size_t next = lists_[order];
  links(unit) = {next, none};
  if (next != none) links(next).before = unit;
  lists_[order] = unit;
  filled_ |= std::uint32_t{1} << order;
  free_at(unit) = static_cast<std::uint8_t>(order + 1);
}

void Blocks::remove(std::size_t unit, unsigned order) noexcept {
  const Links here = links(unit);
  if (here.next != none) links(here.next).before = here.before;
  if (here.before != none) {
    links(here.before).next = here.next;
  } else {
    lists_[order] = here.next;
    if (here.next == none) filled_ &= ~(std::uint32_t{1} << order);
  }
  free_at(unit) = 0;
}

}  // namespace sluice::memory
