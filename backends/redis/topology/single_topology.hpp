// SingleTopology: one server, by its name, its address or its unix socket.
#pragma once

#include "backends/redis/topology/topology.hpp"

namespace sluice::redis_detail {

class SingleTopology final : public Topology {
 public:
  SingleTopology(const LinkContext& context, std::uint64_t seed)
      : Topology(context, seed, 1), link_(add_link()) {}

  [[nodiscard]] Link& link_of(std::uint16_t) noexcept override { return link_; }
  void start() override { link_.open(); }
  boost::asio::awaitable<Errc> connect(Link& link) override {
    const bool ready = co_await link.connection().connect();
    co_return ready ? Errc{} : link.connection().refusal();
  }
  boost::asio::awaitable<bool> connect_subscriber(Connection& connection) override {
    co_return co_await connection.connect();
  }

 private:
  Link& link_;
};

}  // namespace sluice::redis_detail
