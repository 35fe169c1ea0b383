// What was granted and for when, less what was given back: no interval may hold more than a bound
// allows, which is a parameter. It knows answers only, no rule. Threading: one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "src/testing/generators.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

class Outstanding {
 public:
  using Wide = testing::detail::Wide;

  /// From the time of a grant to that of another, both included.
  struct Interval {
    Word from;
    Word to;
    Wide burst;         ///< the largest of those who were granted something in it
    std::size_t since;  ///< the least Grant::since
    std::ptrdiff_t grants;
    Wide late;  ///< of grants from before it, given back after it began
  };
  /// The most units that may have their time in an interval.
  using Bound = std::function<Wide(const Interval&)>;

  /// `since` is passed to the bound: what was in force when the grant was decided. Returns an id.
  std::size_t add(Word at, Wide units, Wide burst, std::size_t since = 0) {
    grants_.push_back({++last_id_, at, units, burst, since});
    return last_id_;
  }
  /// False if the grant was forgotten.
  bool give_back(std::size_t id, Wide units) {
    const auto grant = find(id);
    if (grant == grants_.end()) return false;
    grant->units -= units;
    return true;
  }
  /// The same, for bounds that Interval::late is a part of: after all grants so far.
  bool give_back_late(std::size_t id, Wide units) {
    const auto grant = find(id);
    if (grant == grants_.end()) return false;
    late_.push_back({grant->at, std::ranges::max(grants_, {}, &Grant::at).at, units});
    return give_back(id, units);
  }
  void bring_nearer(std::size_t id, Word at) {
    const auto grant = find(id);
    if (grant != grants_.end()) grant->at = std::min(grant->at, at);
  }
  void clear() {
    grants_.clear();
    late_.clear();
  }

  /// Judges every interval.
  void judge(const Bound& bound) {
    std::ranges::stable_sort(grants_, {}, &Grant::at);
    for (std::size_t first = 0; first < grants_.size(); ++first) {
      Interval in{grants_[first].at, 0, 0, grants_[first].since, 0, late_of(grants_[first].at)};
      Wide sum = 0;
      for (std::size_t last = first; last < grants_.size(); ++last) {
        const Grant& grant = grants_[last];
        in = {in.from,
              grant.at,
              std::max(in.burst, grant.burst),
              std::min(in.since, grant.since),
              in.grants + 1,
              in.late};
        sum += grant.units;
        const Wide most = bound(in);
        if (sum <= most) continue;
        FAIL("from " << in.from << " to " << in.to << ", " << in.to - in.from
                     << " us: " << static_cast<Word>(sum) << " units, "
                     << static_cast<Word>(sum - most) << " too many");
      }
    }
  }

 private:
  struct Grant {
    std::size_t id;
    Word at;
    Wide units;
    Wide burst;
    std::size_t since;
  };
  /// Units of a grant that were given back when `last` was the time of the latest grant.
  struct Late {
    Word granted;
    Word last;
    Wide units;
  };
  [[nodiscard]] Wide late_of(Word from) const {
    Wide sum = 0;
    for (const Late& each : late_) {
      if (each.granted < from && from <= each.last) sum += each.units;
    }
    return sum;
  }
  std::vector<Grant>::iterator find(std::size_t id) {
    return std::ranges::find(grants_, id, &Grant::id);
  }

  std::vector<Grant> grants_;
  std::vector<Late> late_;
  std::size_t last_id_ = 0;
};

}  // namespace sluice::test
