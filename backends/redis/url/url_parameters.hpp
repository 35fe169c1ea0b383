// The parameters of a URL: what stands behind its `?`.
#pragma once

#include <string_view>

#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// Fills the options that the parameters state. Those of TLS need `options.tls`, those of Sentinels
/// `options.sentinel`; the database needs `options.unix_socket`. Throws std::invalid_argument.
void read_url_parameters(std::string_view query, RedisOptions& options);

}  // namespace sluice::redis_detail
