// The two examples together: a server that limits, several client processes that share a redis
// server, and one client that does not care.
#include <sluice/sluice.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/http/child_process.hpp"
#include "tests/support/redis_server.hpp"

namespace {

using namespace sluice;
using namespace std::chrono_literals;
using test::ChildProcess;
namespace net = boost::asio;
namespace beast = boost::beast;
using Response = beast::http::response<beast::http::string_body>;

constexpr int rate = 50;
constexpr int processes = 3;
constexpr int workers = 8;  // of each process
constexpr int calls = 60;   // of each process
// Each worker has at most one call under way, so however late they come, no more than these come
// at once beside the rate.
constexpr int burst = processes * workers + 16;

ChildProcess start_server(int a_second = rate) {
  return ChildProcess({SLUICE_HTTP_SERVER, "0", std::to_string(a_second), std::to_string(burst)});
}

/// The port in "listening on 127.0.0.1:1234".
std::string port_of(const std::string& line) { return line.substr(line.rfind(':') + 1); }

/// What a client prints: "calling 127.0.0.1:1234", and when it is done "60 answered, 0 refused, 59
/// waited for their turn".
struct Report {
  int answered = -1;
  int refused = -1;
  int waited = -1;
};

Report read_report(ChildProcess& client) {
  (void)client.read_line();
  Report report;
  std::string word;
  std::istringstream(client.read_line()) >> report.answered >> word >> report.refused >> word >>
      report.waited;
  return report;
}

/// A client that asks without a limit.
class Greedy {
 public:
  explicit Greedy(const std::string& port) {
    const auto number = static_cast<std::uint16_t>(std::stoi(port));
    stream_.connect(net::ip::tcp::endpoint(net::ip::address_v4::loopback(), number));
  }
  Response ask(const char* target = "/", const char* prefer = "") {
    send(target, prefer);
    return read();
  }
  Response read() {
    Response response;
    beast::http::read(stream_, buffer_, response);
    return response;
  }
  void send(const char* target, const char* prefer) {
    beast::http::request<beast::http::empty_body> request(beast::http::verb::get, target, 11);
    request.set("Prefer", prefer);
    request.set(beast::http::field::host, "localhost");
    request.set("X-Api-Key", "greedy");
    beast::http::write(stream_, request);
  }

 private:
  net::io_context io_;
  beast::tcp_stream stream_{io_};
  beast::flat_buffer buffer_;
};

bool is_refused(const Response& response) {
  return response.result() == beast::http::status::too_many_requests;
}

/// Asks until it is refused, and judges what the refusal says.
void check_refusal(const std::string& port) {
  Greedy greedy(port);
  Response response = greedy.ask();
  CHECK(response.result() == beast::http::status::ok);
  CHECK(response[beast::http::field::retry_after].empty());
  CHECK(response["RateLimit-Policy"] == "\"api\";q=" + std::to_string(burst) + ";w=1");
  for (int i = 1; i < 100 * burst && !is_refused(response); ++i) response = greedy.ask();
  REQUIRE(is_refused(response));

  const auto feedback = http::parse_feedback(response, SystemClock().now());
  CHECK(feedback.retry_after == 1s);  // 20 ms, rounded up
  REQUIRE(feedback.windows().size() == 2);
  for (const http::Window& window : feedback.windows()) {
    CHECK(window.limit == burst);
    CHECK(window.remaining == 0);
    CHECK(window.reset == 1s);
  }
  for (const http::Note& note : feedback.notes()) CHECK(note.fate == http::Fate::used);
  // The one sleep: who waits as told, by a clock of its own, is not refused again.
  std::this_thread::sleep_for(feedback.wait().value());
  CHECK(greedy.ask().result() == beast::http::status::ok);
}

}  // namespace

TEST_CASE("a client under several limits calls a real server") {
  ChildProcess server = start_server();
  const std::string port = port_of(server.read_line());
  ChildProcess client({SLUICE_LLM_CLIENT, port, "12"});
  CHECK(client.read_line() == "12 answers from port " + port);
  CHECK(client.wait() == 0);
}

TEST_CASE("a fleet that shares its server's limit is never refused, and keeps its rate") {
  if (test::redis_left_out()) return;
  test::RedisServer redis;
  ChildProcess server = start_server();
  const std::string port = port_of(server.read_line());
  REQUIRE_FALSE(port.empty());

  std::vector<std::unique_ptr<ChildProcess>> fleet;
  for (int i = 0; i < processes; ++i) {
    fleet.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{SLUICE_HTTP_CLIENT, port, std::to_string(calls),
                                 std::to_string(rate), redis.unix_socket()}));
  }
  check_refusal(port);

  int waited = 0;
  for (const auto& client : fleet) {
    const Report report = read_report(*client);
    CHECK(client->wait() == 0);
    CHECK(report.answered == calls);
    CHECK(report.refused == 0);
    waited += report.waited;
  }
  // While calls wait for their turn, the fleet goes at its rate. Counted, because how long it took
  // is the machine's affair.
  CHECK(waited > processes * calls / 2);

  server.interrupt();
  CHECK(server.wait() == 0);
}

TEST_CASE("a client that says how long it waits is served in its turn, and is seen meanwhile") {
  ChildProcess server({SLUICE_HTTP_SERVER, "0", "1", "1"});
  const std::string port = port_of(server.read_line());
  Greedy looks_on(port);
  CHECK(looks_on.ask("/waiting").body().empty());
  std::deque<Greedy> waiting;
  for (int i = 0; i < 5; ++i) waiting.emplace_back(port).send("/", "wait=60");
  std::string seen;
  for (int i = 0; i < 1000 && seen.empty(); ++i) seen = looks_on.ask("/waiting").body();
  CHECK(seen.find("api of greedy: waiting ") == 0);
  for (Greedy& each : waiting) CHECK(each.read().result() == beast::http::status::ok);
  CHECK(looks_on.ask("/waiting").body().empty());
}

TEST_CASE("the same fleet at more than the server's rate is refused, so the test above can fail") {
  if (test::redis_left_out()) return;
  test::RedisServer redis;
  ChildProcess server = start_server(5);  // few, since a busy machine may be slow to ask
  const std::string port = port_of(server.read_line());
  // Once refused, it goes as slowly as a gate reopens: so only a few calls more.
  constexpr int some = burst + workers + 4;
  ChildProcess client(
      {SLUICE_HTTP_CLIENT, port, std::to_string(some), "5000", redis.unix_socket()});
  const Report report = read_report(client);
  CHECK(client.wait() == 1);
  CHECK(report.refused > 0);
  CHECK(report.answered == some);  // each refused call was made again
}

TEST_CASE("Ctrl-C ends a client in the middle of its calls") {
  if (test::redis_left_out()) return;
  test::RedisServer redis;
  ChildProcess server = start_server();
  const std::string port = port_of(server.read_line());
  const std::vector<std::string> alone{SLUICE_HTTP_CLIENT, port, "1000000", std::to_string(rate)};
  std::vector<std::string> sharing = alone;
  sharing.push_back(redis.unix_socket());
  for (const auto& command : {alone, sharing}) {
    ChildProcess client(command);
    CHECK(client.read_line() == "calling 127.0.0.1:" + port);
    client.interrupt();
    CHECK_FALSE(client.read_line().empty());
    CHECK(client.wait() == 0);
  }
}
