// What the tests of the pipeline share: calls that are made by hand and bytes that are read back.
// Threading: single-threaded.
#pragma once

#include <map>
#include <memory>

#include "backends/redis/protocol/pipeline.hpp"
#include "sluice/extend/conclude.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/resp.hpp"

namespace sluice::test {

using redis_detail::Call;
using redis_detail::CallPtr;
using redis_detail::Pipeline;
using Heard = Pipeline::Heard;

inline Step bucket_step(std::string_view tag) {
  Step step{&token_bucket_acquire, Key{tag, "api"}, {}};
  detail::pack(step.args, TokenBucketRule::args(Quota::per_second(10), 1));
  return step;
}

/// Makes it the call of a plan with so many steps. REQUIRES: its memory is that of a new call.
inline void prepare(Call& call, Asked& asked, std::uint64_t nonce, Time deadline,
                    std::size_t steps) {
  call.nonce = nonce;
  call.deadline = deadline;
  call.steps = steps;
  std::vector<std::string> tags;
  for (std::size_t i = 0; i < steps; ++i) tags.push_back("tag" + std::to_string(i));
  std::vector<Step> plan;
  for (const std::string& tag : tags) plan.push_back(bucket_step(tag));
  for (std::size_t i = 0; i < steps; ++i) call.asked[i] = AskedStep(plan[i]);
  redis_detail::encode(call.request, plan, nonce, {});
  call.done = asked.completion();
}

inline CallPtr make_call(Asked& asked, std::uint64_t nonce, Time deadline = Time::max(),
                         std::size_t steps = 1) {
  auto call = std::make_unique<Call>();
  prepare(*call, asked, nonce, deadline, steps);
  return call;
}

inline bool was_decided(const Asked& asked, Word at) {
  return asked.answers == 1 && !asked.error && asked.decision.allowed &&
         asked.decision.at == to_time(at) && asked.decision.source == Source::redis;
}

inline bool has_ended(const Asked& asked, Errc code) {
  return asked.answers == 1 && asked.error == code;
}

}  // namespace sluice::test
