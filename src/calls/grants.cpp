#include "sluice/calls/grants.hpp"

#include <stdexcept>

#include "sluice/calls/call.hpp"
#include "sluice/decide.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/lease.hpp"
#include "src/calls/leases_of.hpp"

namespace sluice {
namespace {

void require_claim(std::size_t claim, std::size_t size) {
  if (claim < size) return;
  const std::string what = "Grants: no claim " + std::to_string(claim);
  if (size == 0) throw std::out_of_range(what + ": nothing was granted");
  throw std::out_of_range(what + ", allowed 0 to " + std::to_string(size - 1));
}

}  // namespace

const Decision& Grants::decision(std::size_t claim) const& {
  require_claim(claim, limits_.size());
  return limits_[claim]->decision();
}

void* Grants::grant(std::size_t claim, const char* tag) {
  require_claim(claim, limits_.size());
  void* const found = limits_[claim]->grant(tag);
  if (found == nullptr) {
    throw std::invalid_argument("the grant of claim " + std::to_string(claim) + " of " +
                                std::to_string(limits_.size()) + ", \"" + limits_[claim]->name() +
                                "\", is of another type");
  }
  return found;
}

void Grants::settle(std::size_t claim, Cost actual) {
  (void)decision(claim);
  detail::ClaimedLimit& limit = *limits_[claim];
  const auto step = limit.settle_step(actual);
  if (!step) return;
  std::error_code error;
  const Decision settled = detail::run(limit.settle(*step), error);
  error = detail::settle_error(error, settled);
  if (error) throw detail::failed_call({"Grants", "settle"}, error, *step);
  limit.settled();
}

bool Grants::lost() const noexcept {
  bool lost = false;
  detail::for_each_lease(
      *this, [&](const Lease& lease, const detail::ClaimedLimit&) { lost = lost || lease.lost(); });
  return lost;
}

void Grants::never_block() noexcept {
  detail::for_each_lease(*this,
                         [](Lease& lease, const detail::ClaimedLimit&) { lease.never_block(); });
}

void Grants::refund() {
  if (limits_.empty()) return;
  ManualResetEvent refunded;
  const auto wake = [](void* event, const Outcome&) noexcept {
    static_cast<ManualResetEvent*>(event)->wake();
  };
  detail::refund_all(limits_, {wake, &refunded});
  refunded.wait();
}

}  // namespace sluice
