// What one call of each remaining algorithm costs the server, so that every one has a figure.
#include <chrono>

#include "bench/redis/cases.hpp"
#include "bench/redis/plan_cases.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

using std::chrono::hours;
constexpr Word plenty = 1'000'000'000;

/// The verbs of the token bucket's full form. What is given back is an old grant: nothing is left
/// of it, and the answer is the same each time.
void add_token_bucket_cases(Rig& rig, Cases& cases) {
  const TokenBucket bucket(rig.store(), "verbs", Quota::per_second(1'000'000).burst(10'000'000));
  const Reservation old = bucket.reserve("bob", 1, Span{1'000'000});
  cases.add_plan("bucket reserve", {bucket.reserve_step("alice", 1, Span{1'000'000})},
                 Verdict::allowed);
  cases.add_plan("bucket refund", {bucket.refund_step("bob", old, 1)}, Verdict::allowed);
}

void add_shared_cases(Rig& rig, Cases& cases) {
  const SharedTokenBucket bucket(rig.store(), "shared");
  bucket.configure("plenty", Quota::per_second(1'000'000).burst(plenty));
  bucket.configure("spent", Quota::per_day(1).burst(1));
  static_cast<void>(bucket.try_acquire("spent"));
  cases.add_plan("shared bucket allow", {bucket.acquire_step("plenty")}, Verdict::allowed);
  cases.add_plan("shared bucket refuse", {bucket.acquire_step("spent")}, Verdict::refused);

  const SharedSlidingWindow brief(rig.store(), "rate");
  brief.configure("brief", RateType::overall, 300, Span{900}, SpentUnits::forgotten);
  const SharedSlidingWindowSteps take = brief.acquire_steps("brief");
  cases.add_plan("shared sliding window allow", {take.begin(), take.end()}, Verdict::allowed);
  rig.note_bytes("shared bucket", rig.memory_usage("{plenty}:shared"));
}

void add_shedder_cases(Rig& rig, Cases& cases) {
  const FleetShedder fleet(
      rig.store(), "fleet", 100,
      {{"critical", FleetShare::percent(100)}, {"sheddable", FleetShare::percent(80)}});
  const LeaseId mine{1, 1};
  cases.add_plan("fleet shedder acquire again", {fleet.acquire_step("critical", fleet.key(), mine)},
                 Verdict::allowed);

  rig.note_bytes("fleet shedder, one lease", rig.memory_usage("{fleet}:fleet"));

  const UtilizationShedder shedder(rig.store(), "load");
  shedder.sample(Utilization::ratio(1, 2));
  const auto critical = shedder.tier("critical");
  cases.add_plan("utilization, ask", {shedder.acquire_step(shedder.whole(), critical)},
                 Verdict::allowed);
  cases.add_plan("utilization, sample",
                 {shedder.sample_step(shedder.whole(), Utilization::ratio(1, 2))},
                 Verdict::allowed);
  rig.note_bytes("utilization", rig.memory_usage("{load}:utilization"));
}

}  // namespace

std::vector<Comparison> register_algorithm_cases(Rig& rig) {
  Cases cases(rig);
  add_token_bucket_cases(rig, cases);
  add_shared_cases(rig, cases);
  add_shedder_cases(rig, cases);
  const char* const us = "server us";
  return {{us, "bucket reserve", "acquire allow"},
          {us, "bucket refund", "acquire allow"},
          {us, "shared bucket allow", "acquire allow"},
          {us, "shared bucket refuse", "acquire refuse"},
          {us, "shared sliding window allow", "one window, hash and set, allow"},
          {us, "fleet shedder acquire again", "lease cycle"},
          {us, "utilization, ask", "EVALSHA of GET and TIME"},
          {us, "utilization, sample", "EVALSHA of GET and TIME"},
          {"bytes", "slot lock", "two-key bucket"},
          {"bytes", "gate", "two-key bucket"},
          {"bytes", "fixed window", "two-key bucket"},
          {"bytes", "shared bucket", "two-key bucket"},
          {"bytes", "utilization", "two-key bucket"},
          {"bytes", "fleet shedder, one lease", "two-key bucket"}};
}

}  // namespace sluice::bench
