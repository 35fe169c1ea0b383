// Waiting by blocking the thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "sluice/calls/grants.hpp"
#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"
#include "sluice/detail/exceptions.hpp"
#include "sluice/wait_options.hpp"

namespace sluice::detail {

/// Blocks until all claims are granted at one instant, or until the deadline.
[[nodiscard]] Grants block(const CallName& call, ClaimedLimits limits, const Deadline& deadline,
                           const WaitOptions& options, const std::optional<Arrival>& arrival = {});
[[nodiscard]] Grants block(ClaimedLimits limits, const Deadline& deadline,
                           const WaitOptions& options, std::error_code& error) noexcept;

/// The same for the first of several alternatives.
[[nodiscard]] Grants block(const CallName& call, Alternatives alternatives,
                           const Deadline& deadline, const WaitOptions& options,
                           const std::optional<Arrival>& arrival = {});
[[nodiscard]] Grants block(Alternatives alternatives, const Deadline& deadline,
                           const WaitOptions& options, std::error_code& error) noexcept;

/// The same for one claim. It returns the claim with its grant or its refusal; after an error,
/// null.
[[nodiscard]] std::unique_ptr<ClaimedLimit> block(const CallName& call,
                                                  std::unique_ptr<ClaimedLimit> limit,
                                                  const Deadline& deadline,
                                                  const WaitOptions& options);
[[nodiscard]] std::unique_ptr<ClaimedLimit> block(std::unique_ptr<ClaimedLimit> limit,
                                                  const Deadline& deadline,
                                                  const WaitOptions& options,
                                                  std::error_code& error) noexcept;

/// Implements acquire() of every limiter. `L::Verbs::claim()` makes the claim, and `L::Grant` is
/// what is granted.
template <class L>
typename L::Grant acquire_one(const L& limiter, const Key& key, Cost cost, const Deadline& deadline,
                              const WaitOptions& options) {
  using Grant = typename L::Grant;
  const auto claim =
      block({L::type_name, "acquire"}, L::Verbs::claim(limiter, key, cost), deadline, options);
  return std::move(*static_cast<Grant*>(claim->grant(&type_tag<Grant>)));
}
template <class L>
typename L::Grant acquire_one(const L& limiter, const Key& key, Cost cost, const Deadline& deadline,
                              const WaitOptions& options, std::error_code& error) noexcept {
  using Grant = typename L::Grant;
  error.clear();
  std::unique_ptr<ClaimedLimit> claim;
  call_within_memory([&] { claim = L::Verbs::claim(limiter, key, cost); }, error);
  if (error) return {};
  claim = block(std::move(claim), deadline, options, error);
  if (!claim) return {};
  return std::move(*static_cast<Grant*>(claim->grant(&type_tag<Grant>)));
}

}  // namespace sluice::detail
