// TLS as a filter of bytes, against OpenSSL's own server side in memory: every cut of the stream,
// records larger than a read, and new keys in the middle. Threading: single-threaded.
#include "backends/redis/connection/tls_session.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::TlsSession;

namespace {

struct Free {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* session) const noexcept { SSL_free(session); }
};

/// The other end, which sees what a network would carry.
class ServerEnd {
 public:
  explicit ServerEnd(const Certificates& files, int version = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_set_security_level(context_.get(), 0);
    REQUIRE(SSL_CTX_use_certificate_chain_file(context_.get(), files.file("server.pem").c_str()));
    REQUIRE(SSL_CTX_use_PrivateKey_file(context_.get(), files.file("server.key").c_str(),
                                        SSL_FILETYPE_PEM));
    session_.reset(SSL_new(context_.get()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(session_.get(), in_, out_);
    SSL_set_accept_state(session_.get());
  }
  void arrive(std::string_view bytes) {
    if (!bytes.empty()) BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
  }
  /// What has arrived in plain text; goes on with the handshake.
  std::string read() {
    std::string plain;
    char buffer[4096];
    for (int n = 0; (n = SSL_read(session_.get(), buffer, sizeof buffer)) > 0;) {
      plain.append(buffer, static_cast<std::size_t>(n));
    }
    return plain;
  }
  void write(std::string_view plain) {
    REQUIRE(SSL_write(session_.get(), plain.data(), static_cast<int>(plain.size())) > 0);
  }
  /// The name that the client has asked for (SNI); empty if none.
  [[nodiscard]] std::string asked_name() const {
    const char* const name = SSL_get_servername(session_.get(), TLSEXT_NAMETYPE_host_name);
    return name == nullptr ? "" : name;
  }
  void renew_keys() { REQUIRE(SSL_key_update(session_.get(), SSL_KEY_UPDATE_REQUESTED) == 1); }
  /// Asks for another handshake, of TLS 1.2.
  void renegotiate() {
    REQUIRE(SSL_renegotiate(session_.get()) == 1);
    REQUIRE(SSL_do_handshake(session_.get()) == 1);
  }
  void end() { SSL_shutdown(session_.get()); }
  std::string sent() {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out_, &bytes);
    std::string result(bytes, static_cast<std::size_t>(size));
    static_cast<void>(BIO_reset(out_));
    return result;
  }

 private:
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> session_;
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
};

RedisTls tls_of(const Certificates& files) {
  return {.ca_file = files.file("ca.pem"), .server_name = "redis.test"};
}

/// Hands the client `bytes` in pieces, as a network may.
void arrive(TlsSession& client, std::string_view bytes, Random& random, std::string& plain) {
  while (!bytes.empty()) {
    const auto size = static_cast<std::size_t>(random.between(1, 700));
    client.arrive(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
    if (client.is_ready()) {
      REQUIRE(client.open(plain) == TlsSession::State::ok);
    } else {
      REQUIRE(client.shake_hands() == TlsSession::State::ok);
    }
  }
}

void shake_hands(TlsSession& client, ServerEnd& server, Random& random) {
  std::string plain;
  REQUIRE(client.shake_hands() == TlsSession::State::ok);
  for (int i = 0; i < 10 && !client.is_ready(); ++i) {
    std::string bytes;
    client.sealed(bytes);
    server.arrive(bytes);
    CHECK(server.read().empty());
    arrive(client, server.sent(), random, plain);
  }
  REQUIRE(client.is_ready());
  CHECK(plain.empty());
  std::string last;
  client.sealed(last);
  server.arrive(last);
  CHECK(server.read().empty());
}

}  // namespace

TEST_CASE("what is sealed arrives, in both directions, however the stream is cut", "[tls]") {
  Random random("what is sealed arrives, in both directions, however the stream is cut");
  CAPTURE(random.repeat());
  const Certificates files;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    CAPTURE(version);
    ServerEnd server(files, version);
    TlsSession client(tls_of(files), "");
    shake_hands(client, server, random);
    for (std::size_t i = 0; i < scaled(60); ++i) {
      const std::string asked(static_cast<std::size_t>(random.between(1, 70'000)), 'a');
      const std::string told(static_cast<std::size_t>(random.between(1, 70'000)), 'b');
      if (version == TLS1_3_VERSION && i % 7 == 3) server.renew_keys();
      REQUIRE(client.seal(asked) == TlsSession::State::ok);
      std::string bytes;
      client.sealed(bytes);
      server.arrive(bytes);
      CHECK(server.read() == asked);
      server.write(told);
      std::string plain;
      arrive(client, server.sent(), random, plain);
      CHECK(plain == told);
    }
    server.end();
    client.arrive(server.sent());
    std::string plain;
    CHECK(client.open(plain) == TlsSession::State::closed);
    CHECK(plain.empty());
  }
}

TEST_CASE("a server is asked for server_name, or else for the host, but not for an address",
          "[tls]") {
  const Certificates files;
  struct Asked {
    std::string server_name;
    std::string host;
    std::string expected;
  };
  for (const Asked& each :
       {Asked{"redis.test", "db.test", "redis.test"},
        Asked{"redis.test", "127.0.0.1", "redis.test"}, Asked{"", "db.test", "db.test"},
        Asked{"", "127.0.0.1", ""}, Asked{"", "::1", ""}}) {
    CAPTURE(each.server_name, each.host);
    RedisTls tls = tls_of(files);
    tls.server_name = each.server_name;
    TlsSession client(tls, each.host);
    REQUIRE(client.shake_hands() == TlsSession::State::ok);
    std::string bytes;
    client.sealed(bytes);
    ServerEnd server(files);
    server.arrive(bytes);
    CHECK(server.read().empty());
    CHECK(server.asked_name() == each.expected);
  }
}

TEST_CASE("the authorities of a folder are trusted, by the names that OpenSSL gives them",
          "[tls]") {
  Random random("the authorities of a folder are trusted, by the names that OpenSSL gives them");
  const Certificates files;
  BIO* const file = BIO_new_file(files.file("ca.pem").c_str(), "r");
  X509* const ca = PEM_read_bio_X509(file, nullptr, nullptr, nullptr);
  char name[16];
  std::snprintf(name, sizeof name, "%08lx.0", X509_subject_name_hash(ca));
  X509_free(ca);
  BIO_free(file);
  std::filesystem::create_symlink(files.file("ca.pem"), files.file(name));
  ServerEnd server(files);
  TlsSession client({.ca_folder = files.file("."), .server_name = "redis.test"}, "");
  shake_hands(client, server, random);
}

TEST_CASE("what is sealed while the server wants another handshake is not lost", "[tls]") {
  Random random("what is sealed while the server wants another handshake is not lost");
  const Certificates files;
  ServerEnd server(files, TLS1_2_VERSION);
  TlsSession client(tls_of(files), "");
  shake_hands(client, server, random);
  server.renegotiate();
  std::string plain;
  arrive(client, server.sent(), random, plain);
  CHECK(client.is_ready());
  std::string refusal;
  client.sealed(refusal);  // an alert, on which the server may end the session
  CHECK_FALSE(refusal.empty());
  const std::string asked(1'000, 'a');
  REQUIRE(client.seal(asked) == TlsSession::State::ok);
  std::string bytes;
  client.sealed(bytes);
  CHECK(bytes.size() > asked.size());
}

TEST_CASE("a server of TLS 1.1 and one that is no TLS are refused", "[tls]") {
  const Certificates files;
  TlsSession client(tls_of(files), "");
  REQUIRE(client.shake_hands() == TlsSession::State::ok);
  ServerEnd old(files, TLS1_1_VERSION);
  std::string bytes;
  client.sealed(bytes);
  old.arrive(bytes);
  CHECK(old.read().empty());
  client.arrive(old.sent());
  CHECK(client.shake_hands() == TlsSession::State::failed);
  CHECK_FALSE(client.error().empty());

  TlsSession other(tls_of(files), "");
  REQUIRE(other.shake_hands() == TlsSession::State::ok);
  other.arrive("-ERR unknown command\r\n");
  CHECK(other.shake_hands() == TlsSession::State::failed);
  CHECK(other.error() == "the server does not speak TLS");
}

TEST_CASE("a record that was changed on its way ends the session", "[tls]") {
  Random random("a record that was changed on its way ends the session");
  CAPTURE(random.repeat());
  const Certificates files;
  ServerEnd server(files);
  TlsSession client(tls_of(files), "");
  shake_hands(client, server, random);
  server.write("$2\r\nok\r\n");
  std::string bytes = server.sent();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  client.arrive(bytes);
  std::string plain;
  CHECK(client.open(plain) == TlsSession::State::failed);
  CHECK(plain.find("ok") == std::string::npos);
}

TEST_CASE("a file that cannot be read is named", "[tls]") {
  const Certificates files;
  const auto complaint = [&](const RedisTls& tls) -> std::string {
    try {
      const TlsSession session(tls, "redis.test");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint({.ca_file = "/nowhere"}).starts_with("ca_file /nowhere: "));
  CHECK(complaint({.ca_file = files.file("server.key")}).starts_with("ca_file "));
  CHECK(complaint({.certificate_file = "/nowhere", .key_file = "/nowhere"})
            .starts_with("certificate_file /nowhere: "));
  CHECK(complaint({.certificate_file = files.file("client.pem"), .key_file = "/nowhere"})
            .starts_with("key_file /nowhere: "));
  CHECK(complaint(
            {.certificate_file = files.file("client.pem"), .key_file = files.file("server.key")})
            .starts_with("key_file "));
  CHECK(complaint({.ca_file = files.file("ca.pem")}).empty());
}
