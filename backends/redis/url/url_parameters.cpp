#include "backends/redis/url/url_parameters.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "backends/redis/url/url_text.hpp"

namespace sluice::redis_detail {
namespace {

using detail::quoted;

constexpr std::string_view sentinel_user = "sentinel_user";
constexpr std::string_view sentinel_password = "sentinel_password";

struct TlsText {
  std::string_view name;
  std::string RedisTls::*member;
};
constexpr std::array tls_texts{
    TlsText{"ca_file", &RedisTls::ca_file}, TlsText{"ca_folder", &RedisTls::ca_folder},
    TlsText{"certificate_file", &RedisTls::certificate_file},
    TlsText{"key_file", &RedisTls::key_file}, TlsText{"server_name", &RedisTls::server_name}};

enum class Family { unknown, database, sentinel, tls };

Family family_of(std::string_view name) noexcept {
  if (name == "database") return Family::database;
  if (name == sentinel_user || name == sentinel_password) return Family::sentinel;
  if (name == "verify" || std::ranges::count(tls_texts, name, &TlsText::name) != 0) {
    return Family::tls;
  }
  return Family::unknown;
}

TlsVerify verify_of(const std::string& text) {
  if (text == "full") return TlsVerify::full;
  if (text == "chain") return TlsVerify::chain;
  if (text == "none") return TlsVerify::none;
  refuse_url("verify must be full, chain or none, got " + quoted(text));
}

void read_tls(std::string_view name, const std::string& value, RedisTls& tls) {
  if (name == "verify") {
    tls.verify = verify_of(value);
  } else {
    tls.*std::ranges::find(tls_texts, name, &TlsText::name)->member = value;
  }
}

class Parameters {
 public:
  explicit Parameters(RedisOptions& options) : options_(options) {}

  void read(std::string_view parameter) {
    const auto text = cut_back(parameter, '=');
    const std::string shown = shown_as(parameter);
    if (!seen_.insert(parameter).second) refuse_url(shown + " stands twice");
    if (!text || text->empty()) refuse_url(shown + " has no value");
    check_family(family_of(parameter), shown);
    store(parameter, decoded(*text, shown));
  }

  void finish() const {
    if (seen_.count(sentinel_user) > seen_.count(sentinel_password)) {
      refuse_url("sentinel_user needs sentinel_password");
    }
  }

 private:
  /// What an error calls the parameter. A name that is unknown may be the rest of a password with
  /// a `&`.
  [[nodiscard]] std::string shown_as(std::string_view name) const {
    if (family_of(name) == Family::unknown && seen_.count(sentinel_password) != 0) {
      return "a parameter behind sentinel_password, in which & must be written as %26,";
    }
    return "the parameter " + quoted(name);
  }

  void check_family(Family family, const std::string& shown) const {
    switch (family) {
      case Family::database:
        if (options_.unix_socket.empty()) refuse_url(shown + " needs unix://");
        return;
      case Family::sentinel:
        if (!options_.sentinel) {
          refuse_url(shown + " needs redis+sentinel:// or rediss+sentinel://");
        }
        return;
      case Family::tls:
        if (!options_.tls) refuse_url(shown + " needs TLS: write " + tls_scheme());
        return;
      case Family::unknown:
        break;
    }
    refuse_url(shown + " is not known; allowed are database with unix://, " +
               "sentinel_user and sentinel_password with redis+sentinel://, and " +
               "ca_file, ca_folder, certificate_file, key_file, server_name and verify with TLS");
  }

  [[nodiscard]] std::string tls_scheme() const {
    if (options_.sentinel) return "rediss+sentinel://";
    return options_.cluster.empty() ? "rediss://" : "rediss+cluster://";
  }

  void store(std::string_view name, std::string value) {
    switch (family_of(name)) {
      case Family::database:
        options_.database = database(value);
        break;
      case Family::sentinel:
        if (name == sentinel_user) {
          options_.sentinel->username = std::move(value);
        } else {
          options_.sentinel->password = std::move(value);
        }
        break;
      default:
        read_tls(name, value, *options_.tls);
    }
  }

  RedisOptions& options_;
  std::set<std::string_view> seen_;
};

}  // namespace

void read_url_parameters(std::string_view query, RedisOptions& options) {
  Parameters parameters(options);
  while (!query.empty()) {
    const auto front = cut_front(query, "&");
    parameters.read(front ? *front : std::exchange(query, {}));
  }
  parameters.finish();
}

}  // namespace sluice::redis_detail
