// Figure 6: the name server hangs, and the connection is cut.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <thread>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

/// Look-ups that begin from now on take so much longer.
std::atomic<Span> delay{Span{0}};

struct Options {
  int times = 20;
  double hang = 6;
};

/// Seconds from the cut to the next decision, and of the end of the store, while look-ups hang.
struct Measured {
  std::vector<double> decided_ms;
  std::vector<double> ended_ms;
  int failed = 0;
};

void cut_once(test::RedisServer& server, const Options& options, Measured& seen) {
  RedisOptions store_options;
  store_options.host = "localhost";
  store_options.port = server.port();
  delay = Span{0};
  auto store = make_redis_store(store_options);
  const TokenBucket bucket(*store, "look-up", Quota::per_second(1'000).burst(1'000));
  static_cast<void>(bucket.try_acquire("a"));
  delay = seconds(options.hang);
  test::RedisClient(server.unix_socket())({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  const std::int64_t cut = now_us();
  std::error_code error;
  do {  // a call that met the cut is unknown
    error.clear();
    static_cast<void>(bucket.try_acquire("a", error));
  } while (error && now_us() < cut + 10'000'000);
  if (error) ++seen.failed;
  seen.decided_ms.push_back(static_cast<double>(now_us() - cut) / 1e3);
  const std::int64_t ended = now_us();
  store.reset();
  seen.ended_ms.push_back(static_cast<double>(now_us() - ended) / 1e3);
}

void run_look_up(const Options& options, Report& report) {
  test::RedisServer server;
  Measured seen;
  for (int i = 0; i < options.times; ++i) cut_once(server, options, seen);
  delay = Span{0};
  const std::string run =
      std::to_string(options.times) + " cuts, look-ups hang for " + text_of(options.hang) + " s";
  report.at_most("6", run, "decided again", quantile(seen.decided_ms, 1), 500, " ms");
  report.at_most("6", run, "the store's end", quantile(seen.ended_ms, 1), 100, " ms");
  report.add({"6", run, "decided again each time", std::to_string(seen.failed) + " failed",
              seen.failed == 0, true});
  sleep_for(seconds(options.hang));  // the look-ups end
}

}  // namespace

void add_look_up(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("look-up", "6: look-ups hang, and connections are cut",
                                [options](Report& report) { run_look_up(*options, report); });
  command.add("--times", options->times, "Cuts");
  command.add("--hang", options->hang, "Seconds of a look-up");
}

}  // namespace sluice::chaos

/// The program's own definition comes before that of the C library.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  std::this_thread::sleep_for(sluice::chaos::delay.load());
  return real(node, service, hints, result);
}
