// StoreServer: the server of a simulated store, which decides one plan at a time, and its outages.
// Threading: the thread that runs the timeline.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/sim/delay.hpp"
#include "sluice/sim/random.hpp"

namespace sluice::sim {

/// What is wrong with the way between clients and a server. Shares are in millionths. A plain
/// value; connections read it at each message.
struct LinkFaults {
  bool cut = false;               ///< every message is lost
  std::uint32_t lost = 0;         ///< share of requests that do not arrive
  std::uint32_t answer_lost = 0;  ///< share of requests whose answer does not arrive
  std::uint32_t doubled = 0;      ///< share of requests that arrive, and are decided, twice
};

/// One server for many connections: a queue, first come, first served, with a service time for each
/// plan. With Poisson arrivals and a constant service time, an M/D/1 queue.
class StoreServer {
 public:
  enum class State : std::uint8_t {
    up,
    refusing,  ///< the process is gone: connections are refused
    silent,    ///< messages are lost
  };

  StoreServer(const Delay& service, const SeededRng& rng)
      : service_(service, states_of(rng, 0)), rng_(rng) {}

  /// The time at which a plan that arrives `now` has been served. REQUIRES: ascending times.
  [[nodiscard]] Time serve(Time now);

  [[nodiscard]] State state() const noexcept { return state_; }
  void set_state(State state) noexcept { state_ = state; }
  /// The server stands still until `until`; what arrives meanwhile waits.
  void pause(Time until) noexcept { free_at_ = std::max(free_at_, until); }
  /// Service times are multiplied by this factor, in thousandths.
  void slow_down(std::uint32_t factor) noexcept { factor_ = factor; }

  [[nodiscard]] std::uint64_t served() const noexcept { return served_; }
  /// The time in which the server worked.
  [[nodiscard]] Span busy() const noexcept { return busy_; }
  /// The time that all plans waited for it before their service, added up.
  [[nodiscard]] Span waited() const noexcept { return waited_; }

 private:
  DelayProcess service_;
  SeededRng rng_;
  State state_ = State::up;
  std::uint32_t factor_ = 1000;
  Time free_at_{};
  std::uint64_t served_ = 0;
  Span busy_{0};
  Span waited_{0};
};

}  // namespace sluice::sim
