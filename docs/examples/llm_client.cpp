// A client of a language model's API: requests and tokens a minute, estimates that are learned and
// replaced by what an answer has really cost, and a gate that every refusal closes for the whole
// fleet.
//
//     llm_client                a fleet of four processes, in an hour of virtual time
//     llm_client PORT [CALLS]   this process, against an HTTP server on 127.0.0.1
#include <sluice/asio/calls.hpp>
#include <sluice/asio/sleep.hpp>
#include <sluice/sim/world.hpp>
#include <sluice/sluice.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace net = boost::asio;
namespace beast = boost::beast;
using namespace sluice;
using namespace std::chrono_literals;

struct Reply {
  std::string text;
  Word tokens;  // as the API counts them
};
/// Sends a prompt. Throws RateLimited if the API refuses it, Transient if it fails and may be tried
/// again.
using Model = std::function<net::awaitable<Reply>(const std::string& prompt)>;

/// What one process needs to call the API within its limits. The fleet shares them by the store.
class Client {
 public:
  explicit Client(Store& store) : store_(store) {}

  /// Waits until requests, tokens and the gate let the call go ahead, all at one instant; then
  /// calls, and is charged the tokens of the answer instead of the estimate.
  net::awaitable<std::string> ask(const Model& model, std::string prompt) {
    const Word unknown = static_cast<Word>(prompt.size()) / 4 + 1000;  // what the answer may cost
    const Call call({{requests_, "key"},
                     {tokens_, "key", estimator_.of("small model", unknown)},
                     {gates_, account_}},
                    {.deadline = 5min, .budget = &budget_});
    const auto send = [&]() -> net::awaitable<Costed<std::string>> {
      const Reply answer = co_await model(prompt);
      co_return Costed<std::string>{answer.text, answer.tokens};
    };
    co_return co_await sluice::asio::async_call(call, send);
  }

 private:
  Store& store_;
  TokenBucket requests_{store_, "requests", Quota::per_minute(300).burst(10)};
  TokenBucket tokens_{
      store_, "tokens", Quota::per_minute(100'000).burst(10'000), {.refund = Refund::in_full}};
  Gates gates_{store_, "model", {"account"}};
  Scope account_ = gates_.scope("account", "ours");
  RetryBudget budget_;
  Estimator estimator_;
};

/// The API of the simulation: an answer takes a second or two, and one call in fifty is refused.
struct SimulatedModel {
  sim::World& world;
  SeededRng rng{7};
  Time closed_until{};
  int answered = 0;
  int refused = 0;
  int too_early = 0;

  net::awaitable<Reply> operator()(const std::string& prompt) {
    if (world.now() < closed_until) ++too_early;
    co_await sluice::asio::sleep_for(
        world.clock(), 1s + Span{static_cast<Word>(rng.below(1'000'000))}, net::use_awaitable);
    if (rng.below(50) == 0) {
      ++refused;
      closed_until = std::max(closed_until, world.now() + 5s);
      throw RateLimited(5s);
    }
    ++answered;
    co_return Reply{"yes", static_cast<Word>(prompt.size() / 4 + 100 + rng.below(300))};
  }
};

net::awaitable<void> work(Client& client, const Model& model, int& jobs) {
  while (jobs-- > 0) (void)co_await client.ask(model, "Is this a prompt?");
}

void simulate() {
  sim::World world;
  SimulatedModel api{world};
  const Model model = std::ref(api);
  std::vector<std::unique_ptr<Client>> processes;
  int jobs = 1'000'000;
  for (int i = 0; i < 4; ++i) {
    processes.push_back(std::make_unique<Client>(world.store()));
    for (int worker = 0; worker < 10; ++worker) {
      world.spawn(work(*processes.back(), model, jobs));
    }
  }
  world.run_for(1h);
  std::cout << api.answered << " answers in an hour; of " << api.refused << " refusals, "
            << api.too_early << " while the API was closed\n";
}

/// The real API: here it is the server of http_server.cpp, whose answers cost what they are long.
net::awaitable<Reply> post(net::ip::tcp::endpoint server, std::string prompt) {
  beast::tcp_stream stream(co_await net::this_coro::executor);
  stream.expires_after(30s);
  co_await stream.async_connect(server, net::use_awaitable);
  beast::http::request<beast::http::string_body> request(beast::http::verb::post, "/", 11, prompt);
  request.set(beast::http::field::host, "localhost");
  request.prepare_payload();
  co_await beast::http::async_write(stream, request, net::use_awaitable);
  beast::flat_buffer buffer;
  beast::http::response<beast::http::string_body> response;
  co_await beast::http::async_read(stream, buffer, response, net::use_awaitable);
  http::require_served(response.result_int(), http::parse_feedback(response, SystemClock().now()));
  const auto length = static_cast<Word>(prompt.size() + response.body().size());
  co_return Reply{std::move(response.body()), length / 4 + 1};
}

void call_server(unsigned short port, int jobs) {
  net::io_context context;
  const auto store = make_memory_store();  // or make_redis_store(), for a fleet
  Client client(*store);
  const net::ip::tcp::endpoint server(net::ip::address_v4::loopback(), port);
  const Model model = [server](const std::string& prompt) { return post(server, prompt); };
  const int all = jobs;
  for (int i = 0; i < 8; ++i) {
    net::co_spawn(context, work(client, model, jobs), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
  }
  context.run();
  std::cout << all << " answers from port " << port << '\n';
}

int main(int argc, char** argv) try {
  if (argc < 2) {
    simulate();
  } else {
    call_server(static_cast<unsigned short>(std::stoi(argv[1])),
                argc > 2 ? std::stoi(argv[2]) : 10);
  }
} catch (const std::exception& error) {
  std::cerr << "llm_client: " << error.what() << "\nusage: llm_client [PORT [CALLS]]\n";
  return 1;
}
