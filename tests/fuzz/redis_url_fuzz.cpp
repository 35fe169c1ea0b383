// libFuzzer: whatever a URL is, it fills valid options or is refused by a short printable text that
// does not depend on the password. Threading: single-threaded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/redis/redis_url.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const std::vector<sluice::RedisAddress>& addresses) {
  require(addresses.size() <= 64);
  for (const auto& address : addresses) require(!address.host.empty() && address.port != 0);
}

void check(const sluice::RedisOptions& options) {
  require(!options.host.empty() && options.port != 0);
  require(options.database <= 1'000'000);
  require(options.username.empty() || !options.password.empty());
  check(options.cluster);
  if (!options.cluster.empty()) {
    require(!options.sentinel && options.unix_socket.empty() && options.database == 0);
  }
  if (!options.sentinel) return;
  check(options.sentinel->sentinels);
  require(!options.sentinel->master.empty() && !options.sentinel->sentinels.empty());
  require(options.sentinel->username.empty() || !options.sentinel->password.empty());
  require(options.sentinel->tls.has_value() == options.tls.has_value());
}

/// The text of the refusal; empty if the URL is valid.
std::string refusal_of(const std::string& url) {
  try {
    check(sluice::parse_redis_url(url));
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    require(text.starts_with("parse_redis_url: ") && text.size() < 800);
    require(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
    return text;
  }
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string url(reinterpret_cast<const char*>(data), size);
  refusal_of(url);
  // The same with a password, if an @ behind it says that it is one.
  const std::size_t end = url.find("://");
  if (end == std::string::npos || url.find('@', end) == std::string::npos) return 0;
  const std::string front = url.substr(0, end + 3);
  const std::string back = url.substr(end + 3);
  require(refusal_of(front + "u:canary" + back) == refusal_of(front + "u:secret" + back));
  return 0;
}
