// TLS to a Redis server.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

/// What the store checks of the server's certificate.
enum class TlsVerify : std::uint8_t {
  full,   ///< its chain of signatures and the server's name
  chain,  ///< its chain of signatures; any certificate of the same authority will do
  none,   ///< nothing: whoever answers is believed. For tests
};

/// Encrypts the connection: TLS 1.2 or later. The files are PEM and are read at each connect, so
/// that a renewed certificate is in use from the next connection on; one that cannot be read makes
/// the attempt fail, and RedisEvent::cause says which.
struct RedisTls {
  /// The authorities to trust: a file, or a folder as `openssl rehash` prepares it, or both. Both
  /// empty means those of the system.
  std::string ca_file{};
  std::string ca_folder{};
  /// The client's certificate, with what belongs to its chain, and its private key. A server that
  /// demands one (`tls-auth-clients yes`, which is its default) refuses a store without. Both or
  /// none.
  std::string certificate_file{};
  std::string key_file{};
  /// The name that each certificate must be for, and that each server is told (SNI, unless it is an
  /// address). Empty means the host by which a server is reached; behind Sentinels and in a cluster
  /// it is the one that they announce. A unix socket has none: with TlsVerify::full, set this.
  std::string server_name{};
  TlsVerify verify = TlsVerify::full;
};

}  // namespace sluice
