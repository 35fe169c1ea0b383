// What the fixtures of clusters and of Sentinels share: logged-in clients, waiting, TLS settings.
// Threading: the fixture's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificates.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::test {

/// A client on the server's unix socket, logged in. Throws std::runtime_error if it cannot.
[[nodiscard]] RedisClient log_in(const RedisServer& server, const std::string& password);

/// Waits until `condition` is true; an exception of it counts as false. Throws std::runtime_error
/// that says `what` after 60 s.
void await(const std::string& what, const std::function<bool()>& condition);

/// A field of the reply to INFO or CLUSTER INFO; empty if there is none.
[[nodiscard]] std::string field_of(const std::string& info, const std::string& name);

/// Makes it a server whose port speaks TLS, also to other servers; null: a plain one.
void use_tls(RedisSetup& setup, const Certificates* certificates);

[[nodiscard]] std::vector<std::uint16_t> ports_of(
    const std::vector<std::unique_ptr<RedisServer>>& servers);

/// "master" or "slave" by ROLE; empty if the server does not answer.
[[nodiscard]] std::string role_of(const RedisServer& server, const std::string& password);

}  // namespace sluice::test
