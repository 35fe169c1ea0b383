// In the place of TLS in a build without OpenSSL: no session is ever made.
#include <stdexcept>

#include "backends/redis/connection/tls_session.hpp"

namespace sluice::redis_detail {

struct TlsSession::Impl {
  std::string error{};
};

bool has_tls() noexcept { return false; }

void prepare(const RedisTls&) {}

TlsSession::TlsSession(const RedisTls&, const std::string&) {
  throw std::runtime_error("this build of Sluice has no TLS");
}
TlsSession::~TlsSession() = default;
void TlsSession::arrive(std::string_view) {}
TlsSession::State TlsSession::shake_hands() { return State::failed; }
bool TlsSession::is_ready() const noexcept { return false; }
TlsSession::State TlsSession::open(std::string&) { return State::failed; }
TlsSession::State TlsSession::seal(std::string_view) { return State::failed; }
void TlsSession::end() noexcept {}
void TlsSession::sealed(std::string&) {}
const std::string& TlsSession::error() const noexcept { return impl_->error; }

}  // namespace sluice::redis_detail
