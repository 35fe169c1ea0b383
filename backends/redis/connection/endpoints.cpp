#include "backends/redis/connection/endpoints.hpp"

#include <sys/un.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

bool holds(const std::vector<Endpoint>& endpoints, const Endpoint& endpoint) {
  return std::ranges::find(endpoints, endpoint) != endpoints.end();
}

}  // namespace

std::string text_of(const Endpoint& endpoint) {
  if (endpoint.protocol().family() == AF_UNIX) {
    const auto* address = reinterpret_cast<const sockaddr_un*>(endpoint.data());
    return {address->sun_path, ::strnlen(address->sun_path, sizeof address->sun_path)};
  }
  tcp::endpoint tcp_endpoint;
  tcp_endpoint.resize(endpoint.size());
  std::memcpy(tcp_endpoint.data(), endpoint.data(), endpoint.size());
  const std::string address = tcp_endpoint.address().to_string();
  const std::string port = std::to_string(tcp_endpoint.port());
  return tcp_endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

Endpoints::Endpoints(const RedisOptions& options, Names& names) : options_(options), names_(names) {
  if (!options.unix_socket.empty()) {
    known_.emplace_back(asio::local::stream_protocol::endpoint(options.unix_socket));
    name_ = options.unix_socket;
    return;
  }
  name_ = options.host + ":" + std::to_string(options.port);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  is_name_ = error.failed();
  if (!is_name_) known_.emplace_back(tcp::endpoint(address, options.port));
}

asio::awaitable<std::vector<Endpoint>> Endpoints::list() {
  if (is_name_)
    accept(co_await names_.find(options_.host, options_.port, options_.connect_timeout));
  std::vector<Endpoint> endpoints;
  for (const Endpoint& endpoint : known_) {
    if (!holds(unfit_, endpoint)) endpoints.push_back(endpoint);
  }
  endpoints.insert(endpoints.end(), unfit_.begin(), unfit_.end());
  co_return endpoints;
}

void Endpoints::accept(Found found) {
  error_ = std::move(found.error);
  if (found.endpoints.empty()) return;
  known_.clear();
  for (const Endpoint& endpoint : found.endpoints) {
    if (!holds(known_, endpoint)) known_.push_back(endpoint);
  }
  std::erase_if(unfit_, [this](const Endpoint& endpoint) { return !holds(known_, endpoint); });
}

void Endpoints::put_last(const Endpoint& endpoint) {
  if (!holds(known_, endpoint)) return;
  std::erase(unfit_, endpoint);
  unfit_.push_back(endpoint);
}

}  // namespace sluice::redis_detail
