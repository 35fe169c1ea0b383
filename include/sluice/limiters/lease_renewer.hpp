// LeaseRenewer: renews leases in the background, and notifies holders of lost leases.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sluice/detail/clock_thread.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/limiters/lease.hpp"

namespace sluice {

/// Who renews the leases that are due.
enum class Renewing : std::uint8_t {
  by_thread,  ///< a thread of the renewer, which the first lease that is kept alive starts
  by_hand,    ///< the program, which calls renew_due()
};

/// Renews each registered lease when a third of its TTL has passed, in one batch for all leases of
/// a store that are due, until the lease is released or lost. A lease is lost when the store no
/// longer has it, or when no renewal has succeeded for a whole TTL; its handler then runs by the
/// end of that TTL, also while an answer is pending. One renewer serves any number of limiters:
///
///     LeaseRenewer renewer(store->clock());
///     lease.keep_alive(renewer, [&](const LeaseId&) { stop_working(); });    // starts one thread
///
/// With Renewing::by_hand there is no thread, and the program calls renew_due().
///
/// A renewal that fails is retried after a twelfth of the TTL. All stores are called at once, with
/// a timeout of a third of the lease's TTL, and the thread waits for none of them: a store that
/// hangs delays only its own leases. All leases that are due at one instant are renewed at once, so
/// that a Redis store's max_in_flight must have room for them. The renewer needs a few hundred
/// bytes a lease, and keeps at most as many released leases as live ones (or 64). Thread-safe.
/// Stores must live until they have answered; the renewer need not. A handler and what it owns may
/// be destroyed on a thread of a store.
class LeaseRenewer {
 public:
  /// `clock` is that of the leases' stores. Throws std::invalid_argument for a thread on the clock
  /// of a simulated world, which has none. REQUIRES: the clock outlives this object.
  explicit LeaseRenewer(Clock& clock, Renewing renewing = Renewing::by_thread);
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;
  /// Stops the thread. REQUIRES: does not run on that thread.
  ~LeaseRenewer() = default;

  /// Renews the leases that are due, on this thread, waits for the answers, and calls the handlers
  /// of lost leases. A store that this thread must not wait for (Store::may_block()) answers later,
  /// and the next call handles its answers. Returns the time of the next call; Time::max() if there
  /// is nothing to renew. O(log n) for each lease that is due. Throws std::bad_alloc; all leases
  /// then stay due.
  Time renew_due();

  /// Starts a thread that renews leases when they are due by the clock, without waiting for the
  /// answers; no effect if it runs already. A forked child has no such thread, and may start one of
  /// its own. Lease::keep_alive() and LeaseOptions::renewer start it as well, unless the renewer is
  /// Renewing::by_hand. Throws std::system_error if there can be no thread.
  void start();
  /// Ends the thread. Only pending renewals still complete; the next lease that is kept alive
  /// starts a thread again. REQUIRES: not on that thread.
  void stop() noexcept;

  /// The number of leases that are being renewed.
  [[nodiscard]] std::size_t size() const;

 private:
  friend class Lease;

  struct Kept {
    std::shared_ptr<detail::HeldLease> held;
    Lease::OnLost on_lost;
  };
  using Queue = std::multimap<Time, Kept>;  // by the time when each is due
  struct State;
  struct Batch;

  [[nodiscard]] bool is_running() const noexcept;
  void keep(std::shared_ptr<detail::HeldLease> held, Lease::OnLost on_lost);
  [[nodiscard]] std::vector<Queue::node_type> take_due(Time now);
  void divide(std::vector<Queue::node_type>& due, Time now, bool waits, std::list<Batch>& batches);
  std::vector<std::shared_ptr<ManualResetEvent>> ask(std::vector<Queue::node_type> due, Time now,
                                                     bool waits);
  [[nodiscard]] Time conclude(Time now);
  [[nodiscard]] Time renew_without_waiting() noexcept;

  Clock& clock_;
  Renewing renewing_;
  std::shared_ptr<State> state_;
  std::mutex starting_;                    // held while the thread is started or stopped
  std::atomic<std::uint64_t> runs_in_{0};  // the process of the thread; 0: there is none
  detail::ClockThread thread_;             // last, as it uses the others
};

}  // namespace sluice
