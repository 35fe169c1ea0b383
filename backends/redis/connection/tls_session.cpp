// TLS by OpenSSL, between two buffers in memory.
#include "backends/redis/connection/tls_session.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>

#include "src/util/lasting.hpp"

namespace sluice::redis_detail {
namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const noexcept {
    free(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL_free>>;
using Authorities = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;

/// The first error in OpenSSL's queue of this thread, in words; the queue is empty afterwards.
std::string take_error() {
  const unsigned long code = ERR_peek_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  if (reason != nullptr) return reason;
  return "error " + std::to_string(code) + " of OpenSSL";
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + take_error());
}

bool is_address(const std::string& name) noexcept {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

/// When the file of the system's authorities changed last; 0 if there is none.
std::int64_t changed_at() noexcept {
  const char* path = std::getenv(X509_get_default_cert_file_env());
  if (path == nullptr) path = X509_get_default_cert_file();
  struct stat file {};
  if (::stat(path, &file) != 0) return 0;
  return file.st_mtim.tv_sec * 1'000'000'000LL + file.st_mtim.tv_nsec;
}

/// The authorities of the system, of which there are some hundred: parsing them takes some 50 ms of
/// a core, so it is done once, and again when their file has changed. Thread-safe.
void trust_system(SSL_CTX* context) {
  static std::mutex mutex;
  static detail::Lasting<Authorities> lasting;
  Authorities& known = lasting.object;
  static std::int64_t version = 0;
  const std::lock_guard lock(mutex);
  const std::int64_t current = changed_at();
  if (!known || version != current) {
    Authorities read(X509_STORE_new());
    if (!read) throw std::bad_alloc();
    if (X509_STORE_set_default_paths(read.get()) != 1) fail("the system's authorities");
    known = std::move(read);
    version = current;
  }
  SSL_CTX_set1_cert_store(context, known.get());
}

bool trusts_system(const RedisTls& tls) noexcept {
  return tls.verify != TlsVerify::none && tls.ca_file.empty() && tls.ca_folder.empty();
}

void trust(SSL_CTX* context, const RedisTls& tls) {
  if (trusts_system(tls)) return trust_system(context);
  if (!tls.ca_file.empty() && SSL_CTX_load_verify_file(context, tls.ca_file.c_str()) != 1) {
    fail("ca_file " + tls.ca_file);
  }
  if (!tls.ca_folder.empty() && SSL_CTX_load_verify_dir(context, tls.ca_folder.c_str()) != 1) {
    fail("ca_folder " + tls.ca_folder);
  }
}

void identify(SSL_CTX* context, const RedisTls& tls) {
  if (tls.certificate_file.empty()) return;
  if (SSL_CTX_use_certificate_chain_file(context, tls.certificate_file.c_str()) != 1) {
    fail("certificate_file " + tls.certificate_file);
  }
  const char* const key = tls.key_file.c_str();
  if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    fail("key_file " + tls.key_file);
  }
}

Context make_context(const RedisTls& tls) {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_client_method()));
  if (!context) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // While a server negotiates again, nothing could be sealed. It is told no, and may go on.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  // An encrypted key must not ask for a passphrase at the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  if (tls.verify != TlsVerify::none) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    trust(context.get(), tls);
  }
  identify(context.get(), tls);
  return context;
}

Session make_session(SSL_CTX* context, const RedisTls& tls, const std::string& host) {
  const std::string& name = tls.server_name.empty() ? host : tls.server_name;
  Session session(SSL_new(context));
  if (!session) throw std::bad_alloc();
  const bool address = is_address(name);
  if (!address && !name.empty()) SSL_set_tlsext_host_name(session.get(), name.c_str());
  if (tls.verify == TlsVerify::full) {
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(session.get());
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    const int ok = address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str())
                           : X509_VERIFY_PARAM_set1_host(wanted, name.data(), name.size());
    if (ok != 1 || name.empty())
      throw std::runtime_error("server_name \"" + name + "\" is no name");
  }
  SSL_set_connect_state(session.get());
  return session;
}

}  // namespace

struct TlsSession::Impl {
  Context context;
  Session session;
  BIO* in = nullptr;   // from the network; the session owns both
  BIO* out = nullptr;  // to it
  std::string error{};

  /// What a call that returned `result` has come to.
  State state_of(int result) {
    switch (SSL_get_error(session.get(), result)) {
      case SSL_ERROR_NONE:
      case SSL_ERROR_WANT_READ:
        ERR_clear_error();
        return State::ok;
      case SSL_ERROR_ZERO_RETURN:
        error = "the server closed the connection";
        return State::closed;
      default:
        note_failure();
        return State::failed;
    }
  }

  void note_failure() {
    const long verified = SSL_get_verify_result(session.get());
    const unsigned long code = ERR_peek_error();
    if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
      error = std::string("the certificate is refused: ") + X509_verify_cert_error_string(verified);
      ERR_clear_error();
    } else if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER) {
      error = "the server does not speak TLS";
      ERR_clear_error();
    } else {
      error = take_error();
    }
  }
};

bool has_tls() noexcept { return true; }

void prepare(const RedisTls& tls) {
  if (!trusts_system(tls)) return;
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (!context) throw std::bad_alloc();
  try {
    trust_system(context.get());
  } catch (const std::runtime_error&) {
    return;  // each attempt to connect says so
  }
}

TlsSession::TlsSession(const RedisTls& tls, const std::string& host)
    : impl_(std::make_unique<Impl>()) {
  impl_->context = make_context(tls);
  impl_->session = make_session(impl_->context.get(), tls, host);
  impl_->in = BIO_new(BIO_s_mem());
  impl_->out = BIO_new(BIO_s_mem());
  SSL_set_bio(impl_->session.get(), impl_->in, impl_->out);
  if (impl_->in == nullptr || impl_->out == nullptr) throw std::bad_alloc();
  BIO_set_mem_eof_return(impl_->in, -1);
}

TlsSession::~TlsSession() = default;

void TlsSession::arrive(std::string_view bytes) {
  if (bytes.empty()) return;
  const int taken = BIO_write(impl_->in, bytes.data(), static_cast<int>(bytes.size()));
  if (taken != static_cast<int>(bytes.size())) throw std::bad_alloc();
}

TlsSession::State TlsSession::shake_hands() {
  return impl_->state_of(SSL_do_handshake(impl_->session.get()));
}

bool TlsSession::is_ready() const noexcept {
  return SSL_is_init_finished(impl_->session.get()) == 1;
}

TlsSession::State TlsSession::open(std::string& plain) {
  std::array<char, 16'384> record;  // the most that a record holds
  for (;;) {
    const int bytes = SSL_read(impl_->session.get(), record.data(), record.size());
    if (bytes <= 0) return impl_->state_of(bytes);
    plain.append(record.data(), static_cast<std::size_t>(bytes));
  }
}

TlsSession::State TlsSession::seal(std::string_view plain) {
  if (plain.empty()) return State::ok;
  const int bytes = SSL_write(impl_->session.get(), plain.data(), static_cast<int>(plain.size()));
  const State state = impl_->state_of(bytes);
  if (bytes > 0 || state != State::ok) return state;
  impl_->error = "the session takes no bytes";
  return State::failed;
}

void TlsSession::end() noexcept {
  if (!is_ready()) return;
  SSL_shutdown(impl_->session.get());
  ERR_clear_error();
}

void TlsSession::sealed(std::string& out) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(impl_->out, &bytes);
  if (size <= 0) return;
  out.append(bytes, static_cast<std::size_t>(size));
  static_cast<void>(BIO_reset(impl_->out));
}

const std::string& TlsSession::error() const noexcept { return impl_->error; }

}  // namespace sluice::redis_detail
