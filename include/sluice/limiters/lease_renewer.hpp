// Renews leases in the background, and tells their holders when one was lost.
#pragma once

#include <atomic>
#include <latch>
#include <list>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/limiters/lease.hpp"

namespace sluice {

/// Renews each lease that it is given when a third of its TTL has passed, all of a store that are
/// due in one batch, until the lease is given back or lost. Lost means: the store no longer knows
/// it, or no renewal succeeded for a whole TTL; then the holder is told by the end of that, also
/// while an answer is still on its way. The program owns it, and one serves any number of limiters:
///
///     LeaseRenewer renewer(store->clock());
///     renewer.start();                                     // one thread
///     lease.keep_alive(renewer, [&](const LeaseId&) { stop_working(); });
///
/// Without start() there is no thread, and somebody calls renew_due().
/// A renewal that fails is tried again after a twelfth of the TTL. All stores are asked at once,
/// each lease for a third of its TTL at most, and the thread waits for none of them: a store that
/// hangs delays its own leases alone. It holds a few hundred bytes for each lease, and for no more
/// given back than there are live. Thread-safe. Stores must live until they have answered, not so
/// the renewer; what a handler owns may then end on a store's thread. Leases that are due at one
/// instant are asked for at once, so a Redis store's max_in_flight must have room for them.
class LeaseRenewer {
 public:
  /// What leases are timed by: the clock of their stores. REQUIRES: it outlives this object.
  explicit LeaseRenewer(Clock& clock);
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;
  /// Stops the thread. REQUIRES: not on that thread.
  ~LeaseRenewer() { stop(); }

  /// Renews what is due, on this thread, waits for the answers, and calls the handlers of what
  /// turns out to be lost. A store that this thread must not wait for (Store::may_block()) answers
  /// later, and the next call tells what it said. Returns when it should be called next;
  /// Time::max() if there is nothing to renew. O(log n) for each that is due. Throws
  /// std::bad_alloc; all then stays due.
  Time renew_due();

  /// Does so on a thread of its own whenever something is due by the clock, without waiting for the
  /// answers; no effect if it does already. Throws std::system_error.
  void start();
  /// Ends that thread; leases are not renewed any more but by what is asked already. REQUIRES: not
  /// on that thread, and not while another thread starts or stops it.
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
  struct State;
  struct Batch;

  void keep(std::shared_ptr<detail::HeldLease> held, Lease::OnLost on_lost);
  [[nodiscard]] std::vector<Queue::node_type> take_due(Time now);
  void divide(std::vector<Queue::node_type>& due, Time now, bool waits, std::list<Batch>& batches);
  std::vector<std::shared_ptr<ManualResetEvent>> ask(std::vector<Queue::node_type> due, Time now,
                                                     bool waits);
  [[nodiscard]] Time conclude(Time now);
  void run(std::latch& known);

  Clock& clock_;
  std::shared_ptr<State> state_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice
