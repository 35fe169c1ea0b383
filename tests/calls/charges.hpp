// What limits have charged, and when. Threading: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sluice/time.hpp"

namespace sluice::test {

struct Charge {
  Time at;
  Word cost;
};

/// The most that was charged in any half-open interval of this length.
inline Word busiest(std::vector<Charge> charges, Span span) {
  std::sort(charges.begin(), charges.end(),
            [](const Charge& a, const Charge& b) { return a.at < b.at; });
  Word most = 0;
  Word sum = 0;
  std::size_t first = 0;
  for (const Charge& charge : charges) {
    sum += charge.cost;
    while (charges[first].at <= charge.at - span) sum -= charges[first++].cost;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace sluice::test
