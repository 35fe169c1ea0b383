// Figure 10: the clock of a promoted replica is wrong.
#include <stdexcept>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/support/frozen_redis.hpp"
#include "tests/support/redis_sentinels.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  double shift = 15;
  bool events = false;
};

constexpr Word capacity = 100;
constexpr Word rate = 10;  // a second

/// What a caller who asks all the time was granted behind the failover.
struct Seen {
  double first_grant = 0;  ///< seconds behind the first refusal by the new master
  double hint = 0;         ///< of that refusal
  Word granted = 0;
  double asked = 0;  ///< seconds from the last grant by the old master to the last question
  bool fresh_key = false;
  Word replaced = 0;  ///< masters; Sentinels may replace the new one as well
};

/// Asks every 10 ms until `span` is over. At `spent` all was spent.
Seen watch(const TokenBucket& bucket, std::int64_t spent, Span span) {
  Seen seen;
  const std::int64_t began = now_us();
  std::int64_t first_refusal = 0;
  while (now_us() < began + span.count()) {
    std::error_code error;
    const Decision decision = bucket.try_acquire("used", error);
    const std::int64_t now = now_us();
    if (!error && decision) {
      if (seen.granted++ == 0) {
        seen.first_grant = first_refusal == 0 ? 0 : static_cast<double>(now - first_refusal) / 1e6;
      }
    } else if (!error && first_refusal == 0 && seen.granted == 0) {
      first_refusal = now;
      seen.hint = static_cast<double>(decision.retry_after.count()) / 1e6;
    }
    sleep_for(10ms);
  }
  seen.asked = static_cast<double>(now_us() - spent) / 1e6;
  seen.fresh_key = bucket.try_acquire("fresh").allowed;
  return seen;
}

/// Spends all, promotes a replica whose clock is wrong, and watches.
Seen fail_over(Span shift, bool prints) {
  test::RedisSentinels::Options setup;
  setup.down_after_ms = 1'500;
  setup.environments = {{}, test::shifted_clock(shift), test::shifted_clock(shift)};
  test::RedisSentinels group(setup);
  RedisOptions options;
  options.call_timeout = 2s;
  options.sentinel.emplace();
  options.sentinel->master = test::RedisSentinels::group;
  for (const std::uint16_t port : group.ports()) {
    options.sentinel->sentinels.push_back({"127.0.0.1", port});
  }
  options.on_event = [prints](const RedisEvent& event) { print_event(prints, event.text()); };
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "clock", Quota::per_second(rate).burst(capacity));
  for (Word taken = 0; bucket.try_acquire("used");) {
    if (++taken > 100 * capacity) throw std::runtime_error("the bucket is never spent");
  }
  const std::int64_t spent = now_us();
  test::RedisClient admin = group.client(0);
  admin({"SET", "marker", "1"});  // WAIT is about the writes of its own connection
  admin({"WAIT", "2", "1000"});
  group.kill_master();
  for (const std::int64_t begin = now_us(); store->stats().connections < 2; sleep_for(1ms)) {
    if (now_us() > begin + 60'000'000) throw std::runtime_error("no new master within 60 s");
  }
  Seen seen = watch(bucket, spent, (shift < 0s ? -shift : shift) + 3s);
  seen.replaced = static_cast<Word>(store->stats().connections) - 1;
  return seen;
}

void judge(const Options& options, bool behind, Report& report) {
  const Span shift = seconds(options.shift);
  const Seen seen = fail_over(behind ? -shift : shift, options.events);
  const std::string run =
      "the new master's clock is " + text_of(options.shift) + " s " + (behind ? "behind" : "ahead");
  // One failover lost nothing, because the replicas had everything.
  const auto lost = static_cast<double>(capacity * (seen.replaced - 1));
  const double extra = behind ? 0 : std::min<double>(capacity, rate * options.shift);
  report.at_most("10", run,
                 "grants behind the failover, rT" + std::string(behind ? "" : " + min(C, r * d)"),
                 static_cast<double>(seen.granted), rate * seen.asked + 1 + extra + lost, "", true);
  if (behind) {
    report.at_most("10", run, "nothing granted for", seen.first_grant, options.shift + 0.5, " s");
    report.add({"10", run, "the hint says when, within 0.1 s",
                text_of(seen.hint) + " s, and it was " + text_of(seen.first_grant),
                std::abs(seen.hint - seen.first_grant) < 0.1});
  }
  report.add({"10", run, "a key that was not in use is granted", seen.fresh_key ? "yes" : "no",
              seen.fresh_key, true});
}

}  // namespace

void add_clock(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command =
      figures.add("clock", "10: a promoted replica's clock is wrong", [options](Report& report) {
        judge(*options, true, report);
        judge(*options, false, report);
      });
  command.add("--shift", options->shift, "Seconds");
  command.add("--events", options->events, "Print the store's events on standard error");
}

}  // namespace sluice::chaos
