// Figure 5, second half: SCRIPT FLUSH under load.
#include "tests/chaos/figures.hpp"
#include "tests/redis/traffic.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  double duration = 20;
  double every_ms = 1;
  std::size_t threads = 8;
};

void run_flush(const Options& options, Report& report) {
  const test::RedisServer server;
  RedisOptions store_options;
  store_options.port = server.port();
  store_options.call_timeout = 20s;
  const auto store = make_redis_store(store_options);
  test::Traffic traffic(*store, test::numbered_keys(options.threads), options.threads, 20s);
  test::RedisClient admin(server.unix_socket());
  std::uint64_t flushes = 0;
  for (const std::int64_t end = now_us() + seconds(options.duration).count(); now_us() < end;) {
    admin({"SCRIPT", "FLUSH", "SYNC"});
    ++flushes;
    sleep_for(Span{static_cast<std::int64_t>(options.every_ms * 1e3)});
  }
  traffic.stop();
  int errors = 0;
  for (const auto& [_, count] : traffic.errors()) errors += count;
  const std::string wrong = traffic.miscounted();
  report.add(
      {"5", std::to_string(flushes) + " x SCRIPT FLUSH, " + text_of(options.every_ms) + " ms apart",
       "0 errors, 0 wrong results",
       std::to_string(errors) + ", " + (wrong.empty() ? "0" : wrong) + " of " +
           std::to_string(traffic.decided()),
       errors == 0 && wrong.empty(), true});
}

}  // namespace

void add_flush(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("flush", "5: SCRIPT FLUSH under load",
                                [options](Report& report) { run_flush(*options, report); });
  command.add("--seconds", options->duration, "How long");
  command.add("--every", options->every_ms, "Milliseconds between flushes");
  command.add("--threads", options->threads, "Callers");
}

}  // namespace sluice::chaos
