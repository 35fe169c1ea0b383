// What a script's reply must be, and in what it differs. Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tests/support/redis_client.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/wire.hpp"

namespace sluice::test {

/// The reply of a script: the nonce, the instant, four words a step, then `output`, packed.
[[nodiscard]] std::optional<std::string> differs(const std::string& nonce, Word now,
                                                 std::span<const Verdict> verdicts,
                                                 const std::string& output,
                                                 const RedisReply& reply);

/// Four words a step.
[[nodiscard]] std::string pack_verdicts(std::span<const Verdict> verdicts);

/// Loads each script and returns its hash by its name. Throws if one cannot be loaded.
[[nodiscard]] Scripts load_scripts(RedisClient& client, const Scripts& scripts);

}  // namespace sluice::test
