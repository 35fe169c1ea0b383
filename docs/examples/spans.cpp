// An observer that makes spans of waits and attributes of decisions, as a tracer wants them. The
// Tracer stands for that of the program, such as OpenTelemetry's.
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/observed_store.hpp>
#include <sluice/virtual_store.hpp>

#include <iostream>
#include <map>
#include <mutex>
#include <string>

using namespace sluice;
using namespace std::chrono_literals;

namespace {

/// Prints spans when they end.
class Tracer {
 public:
  void begin(const void* span, std::string_view name) {
    const std::lock_guard lock(mutex_);
    open_[span] = name;
  }
  void end(const void* span, std::string_view attributes) {
    const std::lock_guard lock(mutex_);
    std::cout << open_[span] << attributes << '\n';
    open_.erase(span);
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::string> open_;
};

class Spans final : public Observer {
 public:
  explicit Spans(Tracer& tracer) : tracer_(tracer) {}

  void decided(const DecisionEvent& event) override {
    if (event.is_of_wait) return;  // part of a span
    tracer_.begin(&event, "decide");
    tracer_.end(&event, attributes_of(event));
  }
  void wait_changed(const WaitEvent& event) override {
    if (event.result == WaitEvent::Result::begun) return tracer_.begin(event.call, "acquire");
    std::string text = " rate_limit.decision=" + std::string(to_string(event.result));
    if (!event.waited_for.empty())
      text += " rate_limit.waited_for=" + std::string(event.waited_for);
    tracer_.end(event.call, text);
  }

 private:
  static std::string attributes_of(const DecisionEvent& event) {
    if (event.error) return " rate_limit.decision=failed error=" + event.error.message();
    const Decision& decision = event.decision;
    std::string text = " rate_limit.decision=";
    text += decision.allowed ? "allowed" : "refused";
    if (!decision.allowed) text += " rate_limit.rejected_by=" + std::string(event.limiter());
    return text + " rate_limit.source=" + std::string(to_string(decision.source));
  }

  Tracer& tracer_;
};

}  // namespace

int main() {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);
  Tracer tracer;
  Spans spans(tracer);
  ObservedStore store(make_virtual_store(clock), spans);
  const TokenBucket bucket(store, "api", Quota::per_second(10).burst(1));

  (void)bucket.try_acquire("alice");
  (void)bucket.try_acquire("alice");
  (void)bucket.acquire("alice", 1, 1s);
  (void)bucket.acquire("alice", 1, 50ms);
}
