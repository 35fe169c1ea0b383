// One plan on its way: what was asked, until when, and who waits for the answer.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "protocol.hpp"
#include "sluice/store.hpp"

namespace sluice::redis_detail {

/// Owned by one place at a time: the caller's thread, then the inbox, then the pipeline.
struct Call {
  Completion done{nullptr, nullptr};
  Request request;
  std::uint64_t nonce = 0;  // names the call as well
  std::array<Word, Plan::max_steps> limits{};
  std::size_t steps = 0;
  Time deadline{};
  unsigned attempts = 0;  // how often it met NOSCRIPT
  std::optional<std::stop_callback<std::function<void()>>> on_stop;

  void fail(Errc code) noexcept { done.fail(code); }
};

using CallPtr = std::unique_ptr<Call>;

}  // namespace sluice::redis_detail
