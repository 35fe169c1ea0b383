// The context of a claim: the store, its random numbers, fresh keys, and failures. Threading: one
// thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "sluice/rng.hpp"
#include "sluice/store.hpp"
#include "sluice/testing/conformance.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::testing::detail {

/// Thrown by a claim that does not hold.
struct Mismatch {
  std::string text;
};

inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw Mismatch{otherwise};
}

class Context {
 public:
  Context(Store& store, const ConformanceOptions& options, const std::string& prefix,
          std::string_view claim)
      : store_(store), options_(options), prefix_(prefix), rng_(options.seed ^ hash(claim)) {
    prefix_ += '/' + std::to_string(hash(claim) % 1'000'000) + '/';
  }

  [[nodiscard]] Store& store() const noexcept { return store_; }
  [[nodiscard]] VirtualClock& clock() const noexcept { return *options_.clock; }
  [[nodiscard]] bool has_clock() const noexcept { return options_.clock != nullptr; }
  [[nodiscard]] unsigned threads() const noexcept { return std::max(2U, options_.threads); }
  Rng& rng() noexcept { return rng_; }

  /// A tag that no other claim uses.
  std::string fresh_tag() { return prefix_ + std::to_string(++serial_); }

  [[nodiscard]] std::size_t scaled(std::size_t count) const {
    const double wanted = static_cast<double>(count) * options_.scale;
    return std::max<std::size_t>(1, static_cast<std::size_t>(wanted));
  }

  /// A uniform draw from [low, high]. REQUIRES: low <= high, less than 2^63 apart.
  Word between(Word low, Word high) {
    return low + static_cast<Word>(rng_.below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }

 private:
  static std::uint64_t hash(std::string_view text) noexcept {
    std::uint64_t value = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return value;
  }

  Store& store_;
  const ConformanceOptions& options_;
  std::string prefix_;
  SeededRng rng_;
  std::size_t serial_ = 0;
};

}  // namespace sluice::testing::detail
