// The checker of leases, with its own list of holders.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "src/testing/grants.hpp"

namespace sluice::testing {
namespace {

using detail::Exact;
using detail::text;

/// The holders at the current time of the history.
class Holders {
 public:
  struct Held {
    Word weight;
    Time until;
  };

  /// A lease ends at its time, not after it.
  void move_to(Time now) {
    while (!ends_.empty() && ends_.begin()->first <= now) erase(ends_.begin()->second);
  }
  void insert(std::uint64_t lease, Held held) {
    erase(lease);
    weight_ += held.weight;
    held_.emplace(lease, held);
    ends_.emplace(held.until, lease);
  }
  bool erase(std::uint64_t lease) {
    const auto found = held_.find(lease);
    if (found == held_.end()) return false;
    weight_ -= found->second.weight;
    ends_.erase({found->second.until, lease});
    held_.erase(found);
    return true;
  }
  [[nodiscard]] const Held* find(std::uint64_t lease) const {
    const auto found = held_.find(lease);
    return found == held_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] Exact weight() const { return weight_; }

 private:
  std::map<std::uint64_t, Held> held_;
  std::set<std::pair<Time, std::uint64_t>> ends_;
  Exact weight_ = 0;
};

}  // namespace

Checked check_leases(std::span<const LeaseRecord> history, Word limit) {
  Holders holders;
  Word fence = -1;
  for (const LeaseRecord& event : history) {
    holders.move_to(event.at);
    const std::string lease = "lease " + std::to_string(event.lease);
    if (event.act == LeaseRecord::Act::released) {
      holders.erase(event.lease);
      continue;
    }
    if (event.act == LeaseRecord::Act::renewed) {
      const Holders::Held* const held = holders.find(event.lease);
      if (held == nullptr) {
        return Breach{lease + " was renewed at " + text(event.at) + ", after its end"};
      }
      holders.insert(event.lease, {held->weight, event.until});
      continue;
    }
    if (event.fence <= fence) {
      return Breach{lease + " got the fence " + text(event.fence) + " at " + text(event.at) +
                        ", after " + text(fence) + " was given",
                    fence - event.fence + 1};
    }
    fence = event.fence;
    holders.insert(event.lease, {event.weight, event.until});
    const Word fits = std::min(limit, event.share);
    if (holders.weight() <= fits) continue;
    return Breach{"with " + lease + " at " + text(event.at) + " the leases weigh " +
                      text(holders.weight()) + ", the limit is " + text(fits),
                  static_cast<Word>(holders.weight() - fits)};
  }
  return {};
}

}  // namespace sluice::testing
