// A service with a fixed capacity behind a utilization shedder, in virtual time: what comes in,
// what is admitted, how busy it is. A closed loop: what is shed makes it less busy. Threading:
// single-threaded.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "sluice/limiters/utilization_shedder.hpp"
#include "sluice/virtual_store.hpp"

namespace sluice::pictures {

/// Two of three calls are tests, most of the rest analytics, and one in twenty a payment.
class OverloadedService {
 public:
  static constexpr int capacity = 200;       // calls a second
  static constexpr int longest_queue = 400;  // calls; more are dropped by the service itself
  static constexpr std::array<int, 3> parts{65, 30,
                                            5};  // percent of the calls: test, analytics, payments

  struct Second {
    int at = 0;
    double offered = 0;  // as a part of the capacity, as all that follows
    double admitted = 0;
    double utilization = 0;  // as it was last sampled
    double amount = 0;
    std::array<double, 3> shed{};  // the part of each tier's calls that was shed
  };

  explicit OverloadedService(Rng& rng)
      : rng_(rng),
        store_(make_virtual_store(clock_)),
        shedder_(*store_, "api", {.most_critical_first = {"payments", "analytics", "test"}}, rng) {
    shedder_.sample(0.0);
  }

  /// Lives through so many seconds under a load that changes with time.
  std::vector<Second> run(int seconds, const std::function<double(int)>& load) {
    std::vector<Second> history;
    for (int i = 0; i < seconds; ++i) history.push_back(live(load(second_)));
    return history;
  }

 private:
  Second live(double load) {
    Second now;
    now.at = second_++;
    const int calls = static_cast<int>(load * capacity + 0.5);
    std::array<int, 3> came{};
    std::array<int, 3> shed{};
    for (int call = 0; call < calls; ++call) {
      clock_.advance(Span{1'000'000 / calls});
      const std::size_t tier = any_tier();
      ++came[tier];
      if (!shedder_.try_acquire(shedder_.options().most_critical_first[2 - tier])) ++shed[tier];
    }
    const int admitted = calls - shed[0] - shed[1] - shed[2];
    queue_ = std::min(queue_ + admitted, longest_queue);
    const int served = std::min(queue_, capacity);
    queue_ -= served;
    busy_ += static_cast<double>(served) / capacity;
    clock_.set(VirtualClock::default_start + std::chrono::seconds{second_});
    if (second_ % period == 0) {
      utilization_ = busy_ / period;
      busy_ = 0;
      shedder_.sample(utilization_);
    }
    now.offered = load;
    now.admitted = static_cast<double>(admitted) / capacity;
    now.utilization = utilization_;
    now.amount = shedder_.report().amount;
    for (std::size_t tier = 0; tier < 3; ++tier) {
      now.shed[tier] = came[tier] == 0 ? 0 : static_cast<double>(shed[tier]) / came[tier];
    }
    return now;
  }

  std::size_t any_tier() {
    const auto draw = static_cast<int>(rng_.below(100));
    return draw < parts[0] ? 0 : draw < parts[0] + parts[1] ? 1 : 2;
  }

  static constexpr int period = 8;  // seconds from one sample to the next

  Rng& rng_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_;
  UtilizationShedder shedder_;
  int second_ = 0;
  int queue_ = 0;
  double busy_ = 0;
  double utilization_ = 0;
};

}  // namespace sluice::pictures
