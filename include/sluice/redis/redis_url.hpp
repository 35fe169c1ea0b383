// The options of a Redis store from one line of configuration.
#pragma once

#include <string_view>

#include "sluice/redis/redis_store.hpp"

namespace sluice {

/// The options that a URL states; the others keep their defaults. The forms:
///
///     redis://[[user]:password@]host[:port][/database]       port 6379, database 0
///     unix://[[user]:password@]/path/of/socket[?database=n]
///     redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/master[/database]
///     redis+cluster://[[user]:password@]host[:port][,host[:port]...]
///
/// rediss://, rediss+sentinel:// and rediss+cluster:// are the same by TLS. The hosts of
/// redis+sentinel:// are Sentinels (port 26379), `master` is the name of the group whose master
/// they name, and user, password and database are those of the Redis servers; the parameters
/// `sentinel_user` and `sentinel_password` are for the login at the Sentinels. The hosts of
/// redis+cluster:// are some nodes (port 6379). A list has at most 64 hosts.
///
/// An IPv6 address stands in brackets: redis://[::1]:6379. Any byte of a part may be written as
/// %XX, and in the user, the password and the path `:`, `/`, `@`, `?`, `#` and `%` must be; in a
/// parameter `&`, `@`, `#` and `%` must be. With TLS these parameters fill RedisOptions::tls, and
/// RedisSentinel::tls alike: `ca_file`, `ca_folder`, `certificate_file`, `key_file`, `server_name`,
/// and `verify` (full, chain or none):
///
///     rediss://:secret@redis.example/0?ca_file=/etc/redis/ca.pem&verify=chain
///     rediss+sentinel://app:secret@s1,s2,s3/mymaster?sentinel_password=other
///
/// Throws std::invalid_argument that names the part which is wrong; no text of it holds a password.
[[nodiscard]] RedisOptions parse_redis_url(std::string_view url);

}  // namespace sluice
