// Certificates of a test, made by the openssl program: two authorities, a server's and a client's,
// and one that has expired. Threading: the test's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/redis_server.hpp"

namespace sluice::test {

class Certificates {
 public:
  /// Throws std::runtime_error with what openssl said if it fails.
  Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;
  ~Certificates();

  /// The path of a file: ca.pem, other_ca.pem; server.pem and server.key (redis.test, 127.0.0.1),
  /// client.pem and client.key; expired.pem, of server.key.
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

 private:
  void make_authority(const std::string& name);
  void make_key(const std::string& name);
  void sign(const std::string& name, const std::string& key, const std::string& names, int days);
  void openssl(const std::string& arguments);

  std::string folder_;
};

/// Has the server listen for TLS on a port of its own, which it returns. `settings` are more
/// configuration, in pairs of name and value.
std::uint16_t listen_for_tls(const RedisServer& server, const Certificates& certificates,
                             const std::string& certificate = "server.pem",
                             const std::vector<std::string>& settings = {});

}  // namespace sluice::test
