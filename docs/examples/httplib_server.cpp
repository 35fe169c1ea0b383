// An HTTP server with cpp-httplib that limits each API key by its tier.
//
//     httplib_server [PORT]      on 127.0.0.1; port 0 takes a free one
#include <sluice/adapters/httplib.hpp>
#include <sluice/sluice.hpp>

#include <iostream>
#include <memory>
#include <string>

int main(int argc, char** argv) try {
  sluice::LimitList list(sluice::Quota::per_minute(60).burst(2));  // everyone
  list.tier("gold", sluice::Quota::per_second(100)).assign("alice", "gold");
  list.deny("mallory");
  const auto store = sluice::make_memory_store();
  const sluice::http::RequestLimit limit(
      sluice::TokenBucket(*store, "api", std::make_shared<sluice::QuotaTable>(list)));

  httplib::Server server;
  server.set_pre_routing_handler(
      sluice::http::limit_requests(limit, [](const httplib::Request& request) {
        const std::string key = request.get_header_value("X-Api-Key");
        return key.empty() ? "anonymous" : key;
      }));
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("hello\n", "text/plain");
  });
  const int wanted = argc > 1 ? std::stoi(argv[1]) : 8080;
  const int port = wanted == 0                                ? server.bind_to_any_port("127.0.0.1")
                   : server.bind_to_port("127.0.0.1", wanted) ? wanted
                                                              : -1;
  if (port < 0) throw std::runtime_error("port " + std::to_string(wanted) + " is not free");
  std::cout << "listening on 127.0.0.1:" << port << std::endl;
  return server.listen_after_bind() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "httplib_server: " << error.what() << '\n';
  return 1;
}
