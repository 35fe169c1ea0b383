// Threading: single-threaded.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/sim/delay.hpp"
#include "sluice/sim/random.hpp"

namespace sluice::bench {

/// Exponential times, drawn beforehand: what is measured are the events.
class Spans {
 public:
  explicit Spans(Span mean = std::chrono::seconds{1}, std::uint64_t purpose = 3) {
    SeededRng rng = sim::stream(1, 2, purpose);
    const sim::Delay delay = sim::Delay::exponential(mean);
    for (Span& span : spans_) span = delay.sample(rng);
  }
  Span next() { return spans_[next_++ % spans_.size()]; }

 private:
  std::vector<Span> spans_ = std::vector<Span>(1 << 16);
  std::size_t next_ = 0;
};

}  // namespace sluice::bench
