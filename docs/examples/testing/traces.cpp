// Testing what several callers get together, as docs/testing.md shows it.
#include <sluice/testing.hpp>
#include <sluice/testing/catch2.hpp>

#include <algorithm>
#include <list>
#include <string>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

/// A worker that asks, and asks again when the decision allows it.
class Worker {
 public:
  explicit Worker(Store& store) : limit_(store, "upstream", {{25, 5s}}) {}

  Time next() const { return next_; }
  void run() {
    const Decision decision = limit_.try_acquire("upstream");
    next_ = decision.at + (decision ? Span{10ms} : decision.retry_after);
  }

 private:
  SlidingWindow limit_;
  Time next_{};
};

TEST_CASE("four workers share what an API allows") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  Recording recording;
  std::list<RecordingStore> connections;  // one for each worker, whom the trace names
  std::list<Worker> workers;
  for (const char* name : {"one", "two", "three", "four"}) {
    workers.emplace_back(connections.emplace_back(*store, recording, name));
  }

  const Time end = clock.now() + 1min;
  while (clock.now() < end) {
    Worker& next = *std::ranges::min_element(workers, {}, &Worker::next);
    clock.set(std::max(clock.now(), next.next()));
    next.run();
  }

  const Trace trace = recording.trace();
  CHECK_THAT(trace, never_exceeds(25, 5s));
  CHECK_THAT(trace, refused_with_exact_hint());
  CHECK_THAT(trace, share_within(0.15));
  CHECK_THAT(trace, at_most_operations_per_grant(4));
  CHECK_THAT(trace, never_fails());
}

/// A claim of your own.
TraceMatcher asks_one_key_only(const std::string& tag) {
  return {"asks only about " + tag, [tag](const Trace& trace) -> Checked {
            for (const TracedCall& call : trace.calls) {
              for (const TracedStep& step : call.steps) {
                if (step.tag != tag) return Breach{"it asked about " + step.tag, 1};
              }
            }
            return {};
          }};
}

TEST_CASE("a claim of one's own is a description and a function") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket limit(store, "api", Quota::per_second(10));
  (void)limit.try_acquire("alice");
  CHECK_THAT(store.trace(), asks_one_key_only("alice") && !asks_one_key_only("bob"));
}
