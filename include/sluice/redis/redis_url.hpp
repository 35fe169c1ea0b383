// The options of a Redis store from one line of configuration.
#pragma once

#include <string_view>

#include "sluice/redis/redis_store.hpp"

namespace sluice {

/// The options that a URL states; the others keep their defaults. The forms:
///
///     redis://[[user]:password@]host[:port][/database]       port 6379, database 0
///     rediss://[[user]:password@]host[:port][/database]      the same by TLS
///     unix://[[user]:password@]/path/of/socket[?database=n]
///
/// An IPv6 address stands in brackets: redis://[::1]:6379. Any byte of the user, the password and
/// the path may be written as %XX, and `:`, `/`, `@`, `?`, `#` and `%` must be. With rediss://
/// these parameters fill RedisOptions::tls: `ca_file`, `ca_folder`, `certificate_file`, `key_file`,
/// `server_name`, and `verify` (full, chain or none):
///
///     rediss://:secret@redis.example/0?ca_file=/etc/redis/ca.pem&verify=chain
///
/// Throws std::invalid_argument that names the part which is wrong; no text of it holds the
/// password.
[[nodiscard]] RedisOptions parse_redis_url(std::string_view url);

}  // namespace sluice
