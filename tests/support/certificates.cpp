#include "tests/support/certificates.hpp"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "tests/support/redis_client.hpp"

namespace sluice::test {

namespace fs = std::filesystem;

Certificates::Certificates() {
  folder_ = (fs::temp_directory_path() / "sluice-tls-XXXXXX").string();
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("cannot make " + folder_);
  make_authority("ca");
  make_authority("other_ca");
  make_key("server");
  make_key("client");
  sign("server", "server", "DNS:redis.test,IP:127.0.0.1", 1);
  sign("client", "client", "DNS:client.test", 1);
  sign("expired", "server", "DNS:redis.test,IP:127.0.0.1", -1);
}

Certificates::~Certificates() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Certificates::openssl(const std::string& arguments) {
  const std::string command =
      "cd '" + folder_ + "' && openssl " + arguments + " >log 2>&1 </dev/null";
  if (std::system(command.c_str()) == 0) return;
  std::ifstream log(file("log"));
  throw std::runtime_error("openssl " + arguments + ": " +
                           std::string(std::istreambuf_iterator<char>(log), {}));
}

void Certificates::make_key(const std::string& name) {
  openssl("ecparam -name prime256v1 -genkey -noout -out " + name + ".key");
}

void Certificates::make_authority(const std::string& name) {
  make_key(name);
  openssl("req -x509 -new -days 1 -subj /CN=" + name + " -key " + name + ".key -out " + name +
          ".pem");
}

void Certificates::sign(const std::string& name, const std::string& key, const std::string& names,
                        int days) {
  std::ofstream(file("names")) << "subjectAltName=" << names << "\n";
  openssl("req -new -subj /CN=" + name + " -key " + key + ".key -out request");
  openssl("x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -days " +
          std::to_string(days) + " -out " + name + ".pem");
}

std::uint16_t listen_for_tls(const RedisServer& server, const Certificates& certificates,
                             const std::string& certificate,
                             const std::vector<std::string>& settings) {
  const std::uint16_t port = free_port();
  std::vector<std::string> words{"CONFIG",           "SET",
                                 "tls-cert-file",    certificates.file(certificate),
                                 "tls-key-file",     certificates.file("server.key"),
                                 "tls-ca-cert-file", certificates.file("ca.pem"),
                                 "tls-port",         std::to_string(port)};
  words.insert(words.end(), settings.begin(), settings.end());
  const std::vector<std::string_view> command(words.begin(), words.end());
  const RedisReply reply = RedisClient(server.unix_socket()).command(command);
  if (reply.text != "OK") throw std::runtime_error("no TLS: " + reply.text);
  return port;
}

}  // namespace sluice::test
