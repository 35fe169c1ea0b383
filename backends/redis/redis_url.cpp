#include "sluice/redis/redis_url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "src/util/quoted.hpp"

namespace sluice {
namespace {

using detail::quoted;

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("parse_redis_url: " + what);
}

/// Cuts off what stands before the first `mark`, and the mark; nothing if there is none.
std::optional<std::string_view> cut_front(std::string_view& rest, std::string_view mark) {
  const std::size_t end = rest.find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view front = rest.substr(0, end);
  rest.remove_prefix(end + mark.size());
  return front;
}

/// Cuts off what stands behind the first `mark`, and the mark; nothing if there is none.
std::optional<std::string_view> cut_back(std::string_view& rest, char mark) {
  const std::size_t begin = rest.find(mark);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view back = rest.substr(begin + 1);
  rest = rest.substr(0, begin);
  return back;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// `part` is what an error calls the text, which may be secret.
std::string decoded(std::string_view text, const std::string& part) {
  std::string result;
  while (!text.empty()) {
    std::size_t length = 1;
    char c = text.front();
    if (c == '%') {
      const int high = text.size() > 2 ? hex_digit(text[1]) : -1;
      const int low = text.size() > 2 ? hex_digit(text[2]) : -1;
      if (high < 0 || low < 0) refuse("a % in " + part + " must be followed by two hex digits");
      c = static_cast<char>(high * 16 + low);
      length = 3;
    }
    if (c == '\0') refuse(part + " must not hold a zero byte");
    result += c;
    text.remove_prefix(length);
  }
  return result;
}

template <class Number>
Number number(std::string_view text, const std::string& part, Number low, Number high) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || value < low || value > high) {
    refuse(part + " must be " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
           quoted(text));
  }
  return value;
}

unsigned database(std::string_view text) {
  return number<unsigned>(text, "the database", 0, 1'000'000);
}

void read_user(std::string_view user_info, RedisOptions& options) {
  const auto password = cut_back(user_info, ':');
  if (!password || password->empty()) {
    refuse("the user has no password: write user:password@ or :password@");
  }
  options.username = decoded(user_info, "the user");
  options.password = decoded(*password, "the password");
}

/// Cuts `user:password@` off, if it is there.
void read_user_of(std::string_view& authority, RedisOptions& options) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return;
  read_user(authority.substr(0, at), options);
  authority.remove_prefix(at + 1);
}

/// host, host:port, [address], [address]:port
void read_host(std::string_view text, RedisOptions& options) {
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    text.remove_prefix(1);
    const auto address = cut_front(text, "]");
    if (!address) refuse("the host has a [ without a ]");
    if (!text.empty() && text.front() != ':')
      refuse("only a port may stand behind the ] of a host");
    port = cut_back(text, ':');
    text = *address;
  } else {
    port = cut_back(text, ':');
    if (port && port->find(':') != std::string_view::npos) {
      refuse("an IPv6 address as host must stand in brackets, as in redis://[::1]:6379");
    }
  }
  const auto is_strange = [](char c) { return c <= ' ' || c > '~'; };
  if (text.empty()) refuse("there is no host");
  if (std::ranges::any_of(text, is_strange)) refuse("the host " + quoted(text) + " is no name");
  options.host = decoded(text, "the host");
  if (port) options.port = number<std::uint16_t>(*port, "the port", 1, 65'535);
}

TlsVerify verify_of(const std::string& text) {
  if (text == "full") return TlsVerify::full;
  if (text == "chain") return TlsVerify::chain;
  if (text == "none") return TlsVerify::none;
  refuse("verify must be full, chain or none, got " + quoted(text));
}

/// False if TLS has no parameter of this name.
bool read_tls_parameter(std::string_view name, const std::string& value, RedisTls& tls) {
  struct File {
    std::string_view name;
    std::string RedisTls::*member;
  };
  static constexpr std::array texts{
      File{"ca_file", &RedisTls::ca_file}, File{"ca_folder", &RedisTls::ca_folder},
      File{"certificate_file", &RedisTls::certificate_file}, File{"key_file", &RedisTls::key_file},
      File{"server_name", &RedisTls::server_name}};
  if (name == "verify") {
    tls.verify = verify_of(value);
    return true;
  }
  const auto* const found = std::ranges::find(texts, name, &File::name);
  if (found == texts.end()) return false;
  tls.*found->member = value;
  return true;
}

void read_parameter(std::string_view parameter, bool is_unix, RedisOptions& options) {
  const auto text = cut_back(parameter, '=');
  const std::string shown = "the parameter " + quoted(parameter);
  if (!text || text->empty()) refuse(shown + " has no value");
  const std::string value = decoded(*text, shown);
  if (is_unix && parameter == "database") {
    options.database = database(value);
    return;
  }
  RedisTls unused;
  if (!read_tls_parameter(parameter, value, options.tls ? *options.tls : unused)) {
    refuse(shown + " is not known; allowed are database with unix://, and ca_file, ca_folder, " +
           "certificate_file, key_file, server_name and verify with rediss://");
  }
  if (!options.tls) refuse(shown + " needs TLS: write rediss://");
}

void read_parameters(std::string_view query, bool is_unix, RedisOptions& options) {
  std::set<std::string_view> seen;
  while (!query.empty()) {
    const auto front = cut_front(query, "&");
    const std::string_view parameter = front ? *front : std::exchange(query, {});
    const std::string_view name = parameter.substr(0, parameter.find('='));
    if (!seen.insert(name).second) refuse("the parameter " + quoted(name) + " stands twice");
    read_parameter(parameter, is_unix, options);
  }
}

}  // namespace

RedisOptions parse_redis_url(std::string_view url) {
  RedisOptions options;
  std::string_view rest = url;
  const auto scheme = cut_front(rest, "://");
  const bool is_unix = scheme == "unix";
  if (scheme != "redis" && scheme != "rediss" && !is_unix) {
    refuse("a URL begins with redis://, rediss:// or unix://");
  }
  if (scheme == "rediss") options.tls.emplace();
  if (cut_back(rest, '#')) refuse("a # must be written as %23");
  const std::string_view query = cut_back(rest, '?').value_or(std::string_view());
  if (is_unix) {
    read_user_of(rest, options);
    options.unix_socket = decoded(rest, "the path");
    if (!rest.starts_with('/')) refuse("the path must begin with /, as in unix:///run/redis.sock");
  } else {
    const std::string_view path = cut_back(rest, '/').value_or(std::string_view());
    read_user_of(rest, options);
    read_host(rest, options);
    if (!path.empty()) options.database = database(path);
  }
  read_parameters(query, is_unix, options);
  return options;
}

}  // namespace sluice
