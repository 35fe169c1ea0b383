#include "sluice/calls/acquire.hpp"

#include <stdexcept>

#include "src/waiting/acquire.hpp"

namespace sluice {

Grants acquire(std::span<const Claim> claims, const Deadline& deadline,
               const WaitOptions& options) {
  return detail::block({"sluice", "acquire"}, detail::limits_of(claims), deadline, options);
}

Grants acquire(std::span<const Claim> claims, const Deadline& deadline, const WaitOptions& options,
               std::error_code& error) noexcept try {
  return detail::block(detail::limits_of(claims), deadline, options, error);
} catch (const std::invalid_argument&) {
  error = Errc::invalid_plan;
  return {};
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
  return {};
}

Grants acquire(const FirstOf& alternatives, const Deadline& deadline, const WaitOptions& options) {
  return detail::block({"sluice", "acquire"}, alternatives.limits(), deadline, options);
}

Grants acquire(const FirstOf& alternatives, const Deadline& deadline, const WaitOptions& options,
               std::error_code& error) noexcept try {
  return detail::block(alternatives.limits(), deadline, options, error);
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
  return {};
}

}  // namespace sluice
