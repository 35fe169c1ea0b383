// TLS as a filter of bytes: what is to be sent is sealed, and what has arrived is opened. No I/O.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sluice/redis/redis_tls.hpp"

namespace sluice::redis_detail {

/// True in a build with OpenSSL.
[[nodiscard]] bool has_tls() noexcept;

/// Reads what is large, so that no session has to: the system's authorities, if they count.
void prepare(const RedisTls& tls);

/// One session as the client. Not thread-safe: it belongs to whoever holds its connection.
class TlsSession {
 public:
  /// Reads the files, and checks that the certificate is for `host` if tls.server_name is empty.
  /// Throws std::runtime_error that names the file, and std::bad_alloc.
  TlsSession(const RedisTls& tls, const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  enum class State {
    ok,      ///< all that has arrived is used
    closed,  ///< the server has ended the session
    failed   ///< see error()
  };

  /// Takes bytes from the network. May throw std::bad_alloc.
  void arrive(std::string_view bytes);
  /// Goes on with the handshake as far as what has arrived allows, see is_ready().
  State shake_hands();
  [[nodiscard]] bool is_ready() const noexcept;
  /// Appends what has arrived to `plain`. May throw std::bad_alloc.
  State open(std::string& plain);
  /// Has `plain` sent by sealed(). REQUIRES: is_ready(). May throw std::bad_alloc.
  State seal(std::string_view plain);
  /// Has the server told that the session ends.
  void end() noexcept;
  /// Appends what is to go to the network to `out`, handshakes and alerts included. May throw
  /// std::bad_alloc.
  void sealed(std::string& out);
  /// Why the last call failed.
  [[nodiscard]] const std::string& error() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::redis_detail
