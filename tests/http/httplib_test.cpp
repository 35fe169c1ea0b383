// A server and clients with cpp-httplib, over loopback.
#include "sluice/adapters/httplib.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <thread>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// On a free port, until it is destroyed.
class Server {
 public:
  template <class L>
  explicit Server(const http::RequestLimit<L>& limit) {
    server_.set_pre_routing_handler(
        http::limit_requests(limit, [](const httplib::Request& request) {
          return request.has_header("X-Api-Key") ? request.get_header_value("X-Api-Key") : "none";
        }));
    server_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
      ++served;
      response.set_content("hello", "text/plain");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Server() {
    server_.stop();
    thread_.join();
  }
  httplib::Result get(const std::string& key) const {
    return httplib::Client("127.0.0.1", port_).Get("/", {{"X-Api-Key", key}});
  }
  [[nodiscard]] int port() const { return port_; }

  std::atomic<int> served{0};

 private:
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
};

/// A connection whose requests are written by hand.
class Connection {
 public:
  explicit Connection(int port) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
  }
  void send(const std::string& text) { boost::asio::write(socket_, boost::asio::buffer(text)); }
  /// Up to this text, or to the end of the connection.
  std::string read_until(const std::string& end) {
    boost::system::error_code error;
    const std::size_t size =
        boost::asio::read_until(socket_, boost::asio::dynamic_buffer(read_), end, error);
    const std::string text = read_.substr(0, error ? read_.size() : size);
    read_.erase(0, text.size());
    return text;
  }
  /// True if nothing comes any more.
  bool is_closed() {
    boost::system::error_code error;
    boost::asio::read(socket_, boost::asio::dynamic_buffer(read_), error);
    return error && read_.empty();
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_{io_};
  std::string read_;
};

}  // namespace

TEST_CASE("the body of a refused request is never taken for the next request", "[http][httplib]") {
  VirtualClock clock;
  Server server(http::RequestLimit(TokenBucket(make_virtual_store(clock), "api", Quota::never())));
  const std::string inner = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string chunk = "1d\r\n" + inner + "\r\n0\r\n\r\n";
  for (const auto& [header, body] :
       {std::pair{"Content-Length: " + std::to_string(inner.size()), inner},
        std::pair{std::string("Transfer-Encoding: chunked"), chunk}}) {
    CAPTURE(header);
    Connection connection(server.port());
    connection.send("POST / HTTP/1.1\r\nHost: x\r\n" + header + "\r\n\r\n");
    const std::string answer = connection.read_until("too many requests\n");
    CHECK(answer.starts_with("HTTP/1.1 429"));
    CHECK(answer.find("Connection: close\r\n") != std::string::npos);
    CHECK(answer.ends_with("\r\n\r\ntoo many requests\n"));
    CHECK(connection.is_closed());
  }
  Connection kept(server.port());
  for (int i = 0; i < 2; ++i) {
    kept.send(inner);
    CHECK(kept.read_until("too many requests\n").starts_with("HTTP/1.1 429"));
  }
}

TEST_CASE("a server with cpp-httplib limits each key by its tier, and a client reads it",
          "[http][httplib]") {
  VirtualClock clock;
  LimitList list(Quota::per_second(1).burst(1));
  list.tier("gold", Quota::per_second(10).burst(50)).assign("alice", "gold");
  const auto inner = make_virtual_store(clock);
  testing::FaultyStore store(*inner);
  const http::RequestLimit limit(TokenBucket(store, "api", std::make_shared<QuotaTable>(list)));
  Server server(limit);

  const httplib::Result gold = server.get("alice");
  REQUIRE(gold);
  CHECK(gold->status == 200);
  CHECK(gold->body == "hello");
  CHECK(gold->get_header_value("X-RateLimit-Remaining") == "49");
  const http::Feedback feedback = http::require_served(gold);
  CHECK(feedback.windows().size() == 2);

  CHECK(server.get("bob")->status == 200);
  CHECK(server.served == 2);
  const httplib::Result refused = server.get("bob");
  CHECK(refused->status == 429);
  CHECK(refused->body == "too many requests\n");
  CHECK(refused->get_header_value("Retry-After") == "1");
  CHECK_THROWS_AS(http::require_served(refused), RateLimited);

  store.fail_call(1, testing::Fault::not_executed());
  const httplib::Result failed = server.get("alice");
  CHECK(failed->status == 503);
  CHECK_THROWS_AS(http::require_served(failed), Transient);
  CHECK(server.served == 2);
}

TEST_CASE("a client waits as the API says, by the time and the bound that it is given",
          "[http][httplib]") {
  const auto wait = [](const http::ParseOptions& options) {
    auto response = std::make_unique<httplib::Response>();
    response->status = 429;
    response->set_header("Retry-After", "Mon, 12 Jan 1970 13:47:10 GMT");
    const httplib::Result refused{std::move(response), httplib::Error::Success};
    try {
      (void)http::require_served(refused, Time{1'000'000s}, options);
    } catch (const RateLimited& limited) {
      return limited.retry_after();
    }
    throw std::logic_error("it has returned");
  };
  CHECK(wait({}) == 30s);
  CHECK(wait({.longest = 20s}) == 20s);
}

TEST_CASE("what was not sent was not served, and what does not pass is no reason to try again",
          "[http][httplib]") {
  const auto failed = [](httplib::Error error) { return httplib::Result{nullptr, error}; };
  const auto served = [&](httplib::Error error) {
    try {
      (void)http::require_served(failed(error));
    } catch (const Transient& transient) {
      return transient.served();
    }
    throw std::logic_error("it has returned");
  };
  using Error = httplib::Error;
  for (const auto error : {Error::Connection, Error::ConnectionTimeout, Error::SSLConnection}) {
    CHECK(served(error) == Served::no);
  }
  for (const auto error : {Error::Read, Error::Write, Error::Unknown}) {
    CHECK(served(error) == Served::perhaps);
  }
  for (const auto error : {Error::SSLServerVerification, Error::Canceled}) {
    CHECK_THROWS_AS(http::require_served(failed(error)), std::runtime_error);
    try {
      (void)http::require_served(failed(error));
    } catch (const Retriable&) {
      FAIL("it would be tried again");
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace sluice::test
