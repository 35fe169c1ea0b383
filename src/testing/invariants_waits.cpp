// Checkers of waiting calls: each ends, in its turn, as soon as it can.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "src/testing/grants.hpp"

namespace sluice::testing {
namespace {

using detail::Exact;
using detail::text;

std::string text_of(const Wait& wait) {
  return "a wait for " + text(wait.cost) + " that began at " + text(wait.began);
}

/// Counts the numbers above a number; O(log n) each.
class Ranks {
 public:
  explicit Ranks(std::size_t count) : sums_(count + 1) {}
  void add(std::size_t index) {
    ++all_;
    for (std::size_t i = index + 1; i < sums_.size(); i += i & -i) ++sums_[i];
  }
  [[nodiscard]] std::size_t above(std::size_t index) const {
    std::size_t below = 0;
    for (std::size_t i = index + 1; i > 0; i -= i & -i) below += sums_[i];
    return all_ - below;
  }

 private:
  std::vector<std::size_t> sums_;
  std::size_t all_ = 0;
};

/// The waits and the held leases, event by event.
class Places {
 public:
  Places(std::span<const Wait> waits, std::span<const LeaseRecord> leases, Word limit)
      : waits_(waits), limit_(limit) {
    for (std::size_t i = 0; i < waits.size(); ++i) {
      moments_.insert({waits[i].began, waits[i].ended});
      begins_.insert({waits[i].began, i});
      ends_.insert({waits[i].ended, i});
    }
    for (const LeaseRecord& event : leases) {
      moments_.insert({event.at, event.until});
      acts_.push_back(&event);
    }
  }

  [[nodiscard]] Checked check(Span slack) {
    Time fits_since{};
    std::size_t fitting = waits_.size();  // the first waiter, if it fits
    for (const Time now : moments_) {
      if (fitting < waits_.size() && now - fits_since > slack) {
        return Breach{text_of(waits_[fitting]) + " was the first and fitted from " +
                          text(fits_since) + " until " + text(now),
                      (now - fits_since - slack).count()};
      }
      pass(now);
      const bool fits = !line_.empty() && held_ + waits_[*line_.begin()].cost <= limit_;
      const std::size_t first = fits ? *line_.begin() : waits_.size();
      if (first != fitting) fits_since = now;
      fitting = first;
    }
    return {};
  }

 private:
  void pass(Time now) {
    for (; next_act_ < acts_.size() && acts_[next_act_]->at <= now; ++next_act_) {
      act(*acts_[next_act_]);
    }
    std::erase_if(leases_, [&](const auto& lease) {
      if (lease.second.until > now) return false;
      held_ -= lease.second.weight;
      return true;
    });
    while (!begins_.empty() && begins_.begin()->first <= now) {
      line_.insert(begins_.extract(begins_.begin()).value().second);
    }
    while (!ends_.empty() && ends_.begin()->first <= now) {
      line_.erase(ends_.extract(ends_.begin()).value().second);
    }
  }

  void act(const LeaseRecord& event) {
    const auto found = leases_.find(event.lease);
    if (event.act == LeaseRecord::Act::acquired) {
      held_ += event.weight;
      leases_[event.lease] = {event.weight, event.until};
    } else if (found != leases_.end() && event.act == LeaseRecord::Act::renewed) {
      found->second.until = event.until;
    } else if (found != leases_.end()) {
      held_ -= found->second.weight;
      leases_.erase(found);
    }
  }

  struct Lease {
    Word weight;
    Time until;
  };
  std::span<const Wait> waits_;
  Word limit_;
  std::set<Time> moments_;
  std::set<std::pair<Time, std::size_t>> begins_;
  std::set<std::pair<Time, std::size_t>> ends_;
  std::vector<const LeaseRecord*> acts_;
  std::size_t next_act_ = 0;
  std::map<std::uint64_t, Lease> leases_;
  std::set<std::size_t> line_;
  Word held_ = 0;
};

/// As check_work_conserving(), for intervals in which a call waits. Waits count from `from` on.
Checked find_idle_line(std::span<const Wait> waits, const RateBound& bound, Time from) {
  const Word period = bound.period.count();
  struct Moment {
    Time at;
    Word granted;
    int waiting;  // one more, or one less
  };
  std::vector<Moment> moments;
  for (const Wait& wait : waits) {
    if (wait.ended < from) continue;
    const bool granted = wait.end == Wait::End::granted;
    moments.push_back({std::max(wait.began, from), 0, 1});
    moments.push_back({wait.ended, granted ? wait.cost : 0, -1});
  }
  std::ranges::stable_sort(moments, {}, &Moment::at);
  Exact granted = 0;
  Exact most = 0;  // of granted * period - units * s, for s since a call waits
  Time since{};
  int waiting = 0;
  for (const Moment& moment : moments) {
    const auto balance = [&] {
      return granted * period - static_cast<Exact>(bound.units) * to_word(moment.at);
    };
    const Exact idle = most - balance() - static_cast<Exact>(bound.burst) * period;
    if (waiting > 0 && idle >= period) {
      return Breach{"callers waited from " + text(since) + " to " + text(moment.at) + ", and " +
                        text(static_cast<Word>(idle / period)) +
                        " units fewer were granted than there were",
                    static_cast<Word>(idle / period)};
    }
    granted += moment.granted;
    if (waiting == 0) {
      since = moment.at;
      most = balance();
    }
    most = std::max(most, balance());
    waiting += moment.waiting;
  }
  return {};
}

}  // namespace

Checked check_waits_end(std::span<const Wait> waits, Span slack) {
  for (const Wait& wait : waits) {
    if (wait.end == Wait::End::pending || wait.completions != 1) {
      return Breach{text_of(wait) + " was told its end " + text(Word{wait.completions}) + " times"};
    }
    const bool bound = wait.deadline != Time::max();
    if (bound && wait.ended - std::max(wait.deadline, wait.began) > slack) {
      return Breach{text_of(wait) + " ended at " + text(wait.ended) + ", its deadline was " +
                        text(wait.deadline),
                    (wait.ended - wait.deadline - slack).count()};
    }
  }
  return {};
}

/// The later arrivals that were granted before the end of a wait, more than `slack` earlier.
Checked check_order(std::span<const Wait> waits, std::size_t most, Span slack) {
  std::vector<std::size_t> order(waits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return waits[i].ended; });
  std::map<std::pair<int, int>, Ranks> granted;
  const auto ranks_of = [&](std::size_t i) -> Ranks& {
    return granted.try_emplace({waits[i].priority, waits[i].flow}, waits.size()).first->second;
  };
  auto next = order.begin();  // not granted yet, as far as those that end now can tell
  for (const std::size_t i : order) {
    for (; waits[i].ended - waits[*next].ended > slack; ++next) {
      if (waits[*next].end == Wait::End::granted) ranks_of(*next).add(*next);
    }
    if (const std::size_t count = ranks_of(i).above(i); count > most) {
      return Breach{text_of(waits[i]) + " and ended at " + text(waits[i].ended) +
                        " was overtaken by " + text(static_cast<Word>(count)),
                    static_cast<Word>(count - most)};
    }
  }
  return {};
}

Checked check_waits_served(std::span<const Wait> waits, const RateBound& bound) {
  return find_idle_line(waits, bound, Time{});
}

Checked check_recovery(std::span<const Wait> waits, Time healed, Span within,
                       const RateBound& bound) {
  return find_idle_line(waits, bound, healed + within);
}

Checked check_places(std::span<const Wait> waits, std::span<const LeaseRecord> leases, Word limit,
                     Span slack) {
  return Places(waits, leases, limit).check(slack);
}

}  // namespace sluice::testing
