// What the memory store's tests share. Threading: each test case has its own objects.
#pragma once

#include <string>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

/// A memory store on a clock that stands still until it is moved, with a hash that repeats.
struct Memory {
  explicit Memory(std::size_t max_keys, std::uint64_t seed = 1)
      : rng(seed), store(make_memory_store({.max_keys = max_keys, .clock = &clock, .rng = &rng})) {}

  [[nodiscard]] MemoryStats stats() const { return store->stats(); }

  VirtualClock clock;
  SeededRng rng;
  std::unique_ptr<MemoryStore> store;
};

/// The error of one decision, or none.
inline std::error_code error_of(Store& store, const Plan& plan) {
  std::error_code error;
  static_cast<void>(decide(store, plan, error));
  return error;
}

inline std::string name(const char* stem, std::size_t number) {
  std::string result(stem);
  result += std::to_string(number);
  return result;
}

}  // namespace sluice::test
