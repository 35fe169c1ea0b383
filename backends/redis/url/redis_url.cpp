#include "sluice/redis/redis_url.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/protocol/node_address.hpp"
#include "backends/redis/url/url_parameters.hpp"
#include "backends/redis/url/url_text.hpp"
#include "src/util/quoted.hpp"

namespace sluice {
namespace {

using detail::quoted;
using redis_detail::cut_back;
using redis_detail::cut_front;
using redis_detail::database;
using redis_detail::decoded;
using redis_detail::refuse_url;

enum class Form { server, unix_socket, sentinel, cluster };

struct Scheme {
  std::string_view name;
  Form form;
  bool has_tls = false;
};
constexpr std::array schemes{Scheme{"redis", Form::server},
                             Scheme{"rediss", Form::server, true},
                             Scheme{"unix", Form::unix_socket},
                             Scheme{"redis+sentinel", Form::sentinel},
                             Scheme{"rediss+sentinel", Form::sentinel, true},
                             Scheme{"redis+cluster", Form::cluster},
                             Scheme{"rediss+cluster", Form::cluster, true}};

constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26'379;
constexpr std::size_t max_hosts = 64;

Scheme cut_scheme(std::string_view& rest) {
  const auto name = cut_front(rest, "://").value_or(std::string_view());
  const auto* const found = std::ranges::find(schemes, name, &Scheme::name);
  if (found == schemes.end()) {
    refuse_url(
        "a URL begins with redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, "
        "redis+cluster:// or rediss+cluster://");
  }
  return *found;
}

void read_user(std::string_view user_info, RedisOptions& options) {
  const auto password = cut_back(user_info, ':');
  if (!password || password->empty()) {
    refuse_url("the user has no password: write user:password@ or :password@");
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

/// What stands there is a password, and not to be shown, if the @ and the host were forgotten.
std::uint16_t read_port(std::string_view text) {
  const bool is_number =
      text.size() <= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number) {
    refuse_url("the port must be 1 to 65535; behind a password stand an @ and the host");
  }
  return redis_detail::number<std::uint16_t>(text, "the port", 1, 65'535);
}

/// host, host:port, [address], [address]:port
RedisAddress read_host(std::string_view text, std::uint16_t default_port) {
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    text.remove_prefix(1);
    const auto address = cut_front(text, "]");
    if (!address) refuse_url("the host has a [ without a ]");
    if (!text.empty() && text.front() != ':') {
      refuse_url("only a port may stand behind the ] of a host");
    }
    port = cut_back(text, ':');
    text = *address;
  } else {
    port = cut_back(text, ':');
    if (port && port->find(':') != std::string_view::npos) {
      refuse_url("an IPv6 address as host must stand in brackets, as in redis://[::1]:6379");
    }
  }
  if (text.empty()) refuse_url("there is no host");
  RedisAddress address{decoded(text, "the host"), default_port};
  if (!redis_detail::is_host(address.host)) {
    refuse_url("the host " + quoted(address.host) + " is no name");
  }
  if (port) address.port = read_port(*port);
  return address;
}

/// One or more hosts with commas between them.
std::vector<RedisAddress> read_hosts(std::string_view text, std::uint16_t default_port) {
  const auto count = static_cast<std::size_t>(std::ranges::count(text, ',')) + 1;
  if (count > max_hosts) {
    refuse_url("a list must have at most 64 hosts, got " + std::to_string(count));
  }
  std::vector<RedisAddress> hosts;
  for (bool is_last = false; !is_last;) {
    const auto front = cut_front(text, ",");
    is_last = !front;
    const std::string_view host = front ? *front : text;
    if (host.empty() && count > 1) refuse_url("a host of the list is empty");
    hosts.push_back(read_host(host, default_port));
  }
  return hosts;
}

void read_unix_socket(std::string_view rest, RedisOptions& options) {
  read_user_of(rest, options);
  options.unix_socket = decoded(rest, "the path");
  if (!rest.starts_with('/')) {
    refuse_url("the path must begin with /, as in unix:///run/redis.sock");
  }
}

void read_server(std::string_view host, std::string_view path, RedisOptions& options) {
  if (host.find(',') != std::string_view::npos) {
    refuse_url("a list of hosts needs redis+sentinel:// or redis+cluster://");
  }
  const RedisAddress address = read_host(host, redis_port);
  options.host = address.host;
  options.port = address.port;
  if (!path.empty()) options.database = database(path);
}

void read_sentinel(std::string_view hosts, std::string_view path, RedisOptions& options) {
  RedisSentinel& sentinel = options.sentinel.emplace();
  sentinel.sentinels = read_hosts(hosts, sentinel_port);
  const auto after_name = cut_back(path, '/');
  if (path.empty()) {
    refuse_url("the master has no name: write it behind the hosts, as in " +
               std::string("redis+sentinel://host/mymaster"));
  }
  sentinel.master = decoded(path, "the name of the master");
  if (after_name && !after_name->empty()) options.database = database(*after_name);
}

void read_cluster(std::string_view hosts, std::string_view path, RedisOptions& options) {
  options.cluster = read_hosts(hosts, redis_port);
  if (!path.empty()) refuse_url("a cluster has no databases, got " + quoted(path));
}

void read_servers(Form form, std::string_view rest, RedisOptions& options) {
  const std::string_view path = cut_back(rest, '/').value_or(std::string_view());
  // A `/` in the password ends here, and no part of the URL may be shown.
  if (path.find('@') != std::string_view::npos) {
    refuse_url("an @ behind the host must be written as %40, and a / before the host as %2F");
  }
  if (form != Form::server && std::ranges::count(rest, '@') > 1) {
    refuse_url("an @ of the user or password must be written as %40; they stand before all hosts");
  }
  read_user_of(rest, options);
  if (form == Form::server) return read_server(rest, path, options);
  if (form == Form::sentinel) return read_sentinel(rest, path, options);
  read_cluster(rest, path, options);
}

}  // namespace

RedisOptions parse_redis_url(std::string_view url) {
  RedisOptions options;
  std::string_view rest = url;
  const Scheme scheme = cut_scheme(rest);
  if (scheme.has_tls) options.tls.emplace();
  if (cut_back(rest, '#')) refuse_url("a # must be written as %23");
  const std::string_view query = cut_back(rest, '?').value_or(std::string_view());
  // A `?` in the password ends here, and no part of the URL may be shown.
  if (query.find('@') != std::string_view::npos) {
    refuse_url("an @ in a parameter must be written as %40, and a ? before the host as %3F");
  }
  if (scheme.form == Form::unix_socket) {
    read_unix_socket(rest, options);
  } else {
    read_servers(scheme.form, rest, options);
  }
  redis_detail::read_url_parameters(query, options);
  if (options.sentinel) options.sentinel->tls = options.tls;
  return options;
}

}  // namespace sluice
