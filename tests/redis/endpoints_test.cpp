// A name with several addresses: the client is given the addresses that a look-up would find.
// Threading: as fake_test.cpp.
#include "backends/redis/client.hpp"
#include "tests/redis/fake_server.hpp"
#include "tests/redis/pipeline_world.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::Client;

namespace {

Client::Endpoint endpoint_of(const FakeServer& server) {
  using boost::asio::ip::tcp;
  return tcp::endpoint(boost::asio::ip::address_v4::loopback(), server.port());
}

/// How one call ends on a client that knows `servers`, in this order.
void ask(Asked& asked, std::initializer_list<const FakeServer*> servers, Span within) {
  RedisOptions options;
  options.connect_timeout = 500ms;
  std::vector<Client::Endpoint> endpoints;
  for (const FakeServer* server : servers) endpoints.push_back(endpoint_of(*server));
  const auto client = std::make_shared<Client>(options, 1, endpoints);
  client->start();
  CallPtr call = make_call(asked, 1, client->clock().now() + within);
  client->submit({&call, 1});
  asked.wait();
  client->stop();
}

}  // namespace

TEST_CASE("an address that does not log the client in is passed over for the next one", "[fake]") {
  const auto mute = [](Peer& peer, int) { peer.wait_for_close(); };
  const auto closes = [](Peer&, int) {};
  const auto turns_away = [](Peer& peer, int) {
    if (peer.read()) peer.send("-NOAUTH Authentication required.\r\n");
  };
  const auto lies = [](Peer& peer, int) { peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"); };
  for (const FakeServer::Behaviour& behaviour :
       {FakeServer::Behaviour(mute), FakeServer::Behaviour(closes),
        FakeServer::Behaviour(turns_away), FakeServer::Behaviour(lies)}) {
    FakeServer first(behaviour);
    FakeServer second(behaviour);
    FakeServer third([](Peer& peer, int) { serve_well(peer); });
    Asked asked;
    ask(asked, {&first, &second, &third}, 20s);
    CHECK(was_decided(asked, 1));
    CHECK(first.connections() == 1);
    CHECK(second.connections() == 1);
  }
}

TEST_CASE("if no address serves, the call quotes the last server that said why", "[fake]") {
  FakeServer first([](Peer& peer, int) {
    while (const auto command = peer.read()) peer.send("-NOAUTH Authentication required.\r\n");
  });
  FakeServer second([](Peer&, int) {});
  Asked asked;
  ask(asked, {&first, &second}, 300ms);
  CHECK(has_ended(asked, Errc::no_auth));
}
