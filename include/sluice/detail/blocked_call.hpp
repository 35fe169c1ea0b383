// The call of a thread that is blocked in decide(). For stores that answer before execute()
// returns: filling in its decision saves copying an Outcome.
#pragma once

#include <algorithm>
#include <span>
#include <system_error>

#include "sluice/store.hpp"

namespace sluice::detail {

/// An address that tells threads apart.
[[nodiscard]] inline const void* this_thread() noexcept {
  static thread_local char mark;
  return &mark;
}

/// Where decide() expects the answer.
struct BlockedCall {
  Decision* decision;
  std::error_code* error;
  std::span<Word> output{};  ///< empty: the caller does not want the output words
  const void* thread = this_thread();
  bool answered = false;  ///< on the blocked thread itself

  /// The call behind a completion, if a thread is blocked in it and does not want the decision of
  /// each step; else null. Its decision is not allowed yet: the store fills it in, then finishes.
  [[nodiscard]] static BlockedCall* of(const Completion& done) noexcept {
    return done.function_ == &BlockedCall::deliver ? static_cast<BlockedCall*>(done.context_)
                                                   : nullptr;
  }
  [[nodiscard]] Completion completion() noexcept { return {&BlockedCall::deliver, this}; }

  /// Delivers the decision that was filled in. REQUIRES: this is of(done).
  void finish(Completion& done, const std::error_code& failure) noexcept {
    done.function_ = nullptr;
    *error = failure;
    if (thread == this_thread()) {
      answered = true;
    } else {
      arrive();  // a store in front handed the completion to another thread
    }
  }
  /// The same with the output words of the plan.
  void finish(Completion& done, const std::error_code& failure,
              std::span<const Word> words) noexcept {
    if (!output.empty()) std::copy(words.begin(), words.end(), output.begin());
    finish(done, failure);
  }

  static void deliver(void* self, const Outcome& outcome) noexcept;
  void arrive() noexcept;
};

}  // namespace sluice::detail
