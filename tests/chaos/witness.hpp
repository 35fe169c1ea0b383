// Witness: a key of one caller's own, whose answers show whether they belong to its calls.
// Threading: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "sluice/limiters/token_bucket.hpp"

namespace sluice::chaos {

/// Each call costs 10,000 of a bucket that does not refill, and whose capacity ends in the digits
/// of `id`. So what remains names the owner of the key in its last four digits, and the call in the
/// others.
class Witness {
 public:
  /// REQUIRES: id < 10,000, and no other witness on the same server has it.
  Witness(Store& store, std::uint32_t id);

  /// The step of the next call. Its key lives in this object.
  [[nodiscard]] Step step() const;
  [[nodiscard]] const std::string& tag() const noexcept { return tag_; }

  /// Takes note of the answer. False if it does not belong to the call. `before` and `now` are
  /// Board::upset at the beginning and at the end of the call: what the key held may be lost if it
  /// is odd, or has changed since the last answer.
  [[nodiscard]] bool hear(const std::error_code& error, const Decision& decision,
                          std::uint64_t before, std::uint64_t now);

 private:
  void take_next_key();

  std::uint32_t id_;
  Word capacity_;
  TokenBucket bucket_;
  std::string tag_;
  int keys_ = 0;
  int calls_ = 0;            // of this key
  Word last_ = 0;            // what remained after the last answer
  Word unknown_ = 0;         // calls that may be charged later
  std::uint64_t heard_ = 0;  // Board::upset at the last answer
};

}  // namespace sluice::chaos
