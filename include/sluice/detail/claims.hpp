// How a call waits for several limits: in the queue of one of them at a time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/calls/claim.hpp"
#include "sluice/calls/grants.hpp"

namespace sluice::detail {

/// The claims of one call, as waiters know a limiter.
class Claims {
 public:
  static constexpr const char* type_name = "sluice";  ///< in messages of exceptions

  /// Throws std::invalid_argument unless there are 1 to Plan::max_steps, all on one store.
  explicit Claims(std::span<const Claim> claims);

  [[nodiscard]] Store& store() const noexcept { return claims_.front().limit().store(); }
  [[nodiscard]] std::span<const Claim> claims() const noexcept { return claims_; }

  struct Waiting {
    using Grant = Grants;
    /// The place of an earlier try of the same call, if any.
    using Request = std::optional<Arrival>;
    static void borrow_store(Claims&) noexcept {}  // claims own none
  };

 private:
  std::vector<Claim> claims_;
};

/// Refunds what was granted of these limits, as far as each allows.
void refund_all(std::span<const std::unique_ptr<ClaimedLimit>> limits, Completion done) noexcept;

class ClaimsWaiter;

/// A call that waits for several limits; see the general template, whose members it has.
///
/// It joins the queue of its first limit. A call that is refused moves to the queue of the limit
/// that it must wait for longest, and keeps its place among all. So callers of one limit are served
/// in order, whatever else they claim, and wait behind nobody whose limits they do not share. A
/// ClaimsWaiter is the stay in one queue.
template <>
class WaiterFor<Claims> : public std::enable_shared_from_this<WaiterFor<Claims>> {
 public:
  using Grant = Grants;
  using Request = Claims::Waiting::Request;

  WaiterFor(const Claims& claims, const Request& request, const Deadline& deadline, Caller caller);
  WaiterFor(const WaiterFor&) = delete;
  WaiterFor& operator=(const WaiterFor&) = delete;
  virtual ~WaiterFor() = default;

  void start() noexcept;
  void on_time() noexcept;
  void cancel() noexcept;
  [[nodiscard]] Time timer() const;
  [[nodiscard]] bool is_under_way() const;

  [[nodiscard]] std::system_error failed(const CallName& call, const std::error_code& error) const;
  /// For another try of the same call. REQUIRES: the wait is over.
  [[nodiscard]] const Request& arrival() const noexcept { return arrival_; }

 protected:
  virtual void timer_changed() noexcept = 0;
  virtual void finished(std::error_code error) noexcept = 0;

  [[nodiscard]] const Decision& refusal() const noexcept { return refusal_; }
  [[nodiscard]] Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] std::shared_ptr<const std::string> reason_for(
      const std::error_code& error) const noexcept;
  [[nodiscard]] Grants take_grant();

 private:
  friend class ClaimsWaiter;
  using Limits = std::vector<std::unique_ptr<ClaimedLimit>>;

  [[nodiscard]] std::shared_ptr<Waiter> current() const;
  /// Joins the queue of a limit. No grant is possible before `asleep_until`.
  void join(std::size_t home, Time asleep_until) noexcept;
  void begin_move() noexcept;
  void end_move() noexcept;
  void end(std::error_code error, const Decision& refusal) noexcept;

  Limits limits_;
  std::vector<std::string> queue_keys_;  // of limits_
  StoreRef store_;
  Clock& clock_;
  Time deadline_;
  Caller caller_;
  Request arrival_;
  Decision granted_{};
  Decision refusal_{};
  mutable std::mutex mutex_;         // guards what follows
  std::shared_ptr<Waiter> current_;  // null when it is over
  int moves_ = 0;                    // under way
  bool is_cancelled_ = false;
};

}  // namespace sluice::detail
