// Renews leases in the background, and tells their holders when one was lost.
#pragma once

#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/lease.hpp"

namespace sluice {

/// Renews each lease that it is given when a third of its TTL has passed, all that are due in one
/// batch, until the lease is given back or lost. Lost means: the store no longer knows it, or no
/// renewal succeeded for a whole TTL. The program owns it, and one serves any number of limiters:
///
///     LeaseRenewer renewer(store->clock());
///     renewer.start();                                     // one thread
///     lease.keep_alive(renewer, [&](const LeaseId&) { stop_working(); });
///
/// Without start() there is no thread, and somebody calls renew_due().
/// A renewal that fails is tried again after a twelfth of the TTL. Stores are asked one after the
/// other, each for a third of its leases' TTL at most: where one may hang, give every store a
/// renewer of its own. It holds a few hundred bytes for each lease, and for no more given back than
/// there are live. Thread-safe.
class LeaseRenewer {
 public:
  /// What leases are timed by: the clock of their stores. REQUIRES: it outlives this object.
  explicit LeaseRenewer(Clock& clock) : clock_(clock) {}
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;
  /// Stops the thread. REQUIRES: not on that thread.
  ~LeaseRenewer() { stop(); }

  /// Renews what is due, on this thread, and calls the handlers of what turns out to be lost.
  /// Returns when it should be called next; Time::max() if there is nothing to renew.
  /// O(log n) for each that is due.
  Time renew_due();

  /// Calls renew_due() on a thread of its own whenever something is due by the clock; no effect if
  /// it does already. Throws std::system_error.
  void start();
  /// Ends that thread, after the batch in hand; leases are not renewed any more. REQUIRES: not on
  /// that thread, and not while another thread starts or stops it.
  void stop() noexcept;

  /// Leases that are being renewed.
  [[nodiscard]] std::size_t size() const;

 private:
  friend class Lease;

  struct Kept {
    std::shared_ptr<detail::HeldLease> held;
    Lease::OnLost on_lost;
  };
  using Queue = std::multimap<Time, Kept>;  // by when it is due

  void keep(std::shared_ptr<detail::HeldLease> held, Lease::OnLost on_lost);
  [[nodiscard]] std::vector<Queue::node_type> take_due(Time now);
  static void renew(std::vector<Queue::node_type>& due, Time now, std::vector<Kept>& lost);
  void run(std::latch& known);

  Clock& clock_;
  Waker waker_;  // of the thread
  mutable std::mutex mutex_;
  Queue queue_;
  std::size_t sweep_at_ = 64;  // when what was given back is next looked for
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice
