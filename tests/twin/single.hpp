// One request of one step, compared on a state of the test's choosing. Threading: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/redis_client.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/tamper.hpp"

namespace sluice::test {

struct Ask {
  const Operation* row;
  testing::detail::Configuration config;

  [[nodiscard]] RuleRequest request() const { return {config.args, config.table}; }
};

/// Of any row, or of this one.
[[nodiscard]] Ask draw_ask(Random& random, const Subject& subject,
                           const testing::detail::Configuration& config);
[[nodiscard]] Ask draw_ask(Random& random, const Subject& subject,
                           const testing::detail::Configuration& config, const Operation& row);

/// The time to live that these requests ask for.
inline constexpr Word kept_ms = 1'000'000;

/// The message of one step, alone or in a plan, without the time.
[[nodiscard]] std::vector<std::string> message_of(const Ask& ask, const std::string& sha,
                                                  const std::string& key, const std::string& nonce,
                                                  bool as_plan);

RedisReply send(RedisClient& client, const std::vector<std::string>& parts);

class SingleTwin {
 public:
  /// `scripts` take the time from their last argument.
  SingleTwin(RedisClient& client, const Scripts& scripts, Random& random);

  [[nodiscard]] const Heads& heads() const noexcept { return heads_; }
  /// Decides on this state, whose key has no time to live: reply, state and time to live must be
  /// the kernel's. `or_corrupt`: or the script may call the state corrupt. Returns the difference.
  [[nodiscard]] std::optional<std::string> compare(const Ask& ask, const std::string& raw, Word now,
                                                   bool or_corrupt);

 private:
  RedisClient& client_;
  Random& random_;
  Scripts shas_;
  Heads heads_;
};

}  // namespace sluice::test
