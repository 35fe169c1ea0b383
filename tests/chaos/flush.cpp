// Figure 5, second half: SCRIPT FLUSH under load.
#include <thread>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
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

constexpr Word capacity = 1'000'000;

/// One thread's calls, on a key of its own.
struct Flushed {
  std::uint64_t decided = 0;
  std::uint64_t errors = 0;
  std::uint64_t wrong = 0;
};

Flushed ask(Store& store, const std::string& tag, std::int64_t end) {
  const TokenBucket bucket(store, "flush", Quota::per(1, 30min).burst(capacity));
  Flushed seen;
  while (now_us() < end) {
    std::error_code error;
    const Step step = bucket.acquire_step(tag);
    const Decision decision = decide(store, Plan(step).within(20s), error);
    if (error) {
      ++seen.errors;
      continue;
    }
    ++seen.decided;
    const Word expected = capacity - static_cast<Word>(seen.decided);
    if (!decision.allowed || decision.remaining != expected) ++seen.wrong;
  }
  const Word charged = capacity - bucket.peek(tag).remaining;
  if (charged != static_cast<Word>(seen.decided)) ++seen.wrong;
  return seen;
}

void run_flush(const Options& options, Report& report) {
  const test::RedisServer server;
  RedisOptions store_options;
  store_options.port = server.port();
  store_options.call_timeout = 20s;
  const auto store = make_redis_store(store_options);
  const std::int64_t end = now_us() + seconds(options.duration).count();
  std::vector<Flushed> all(options.threads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&, i] { all[i] = ask(*store, std::to_string(i), end); });
  }
  test::RedisClient admin(server.unix_socket());
  std::uint64_t flushes = 0;
  while (now_us() < end) {
    admin({"SCRIPT", "FLUSH", "SYNC"});
    ++flushes;
    sleep_for(Span{static_cast<std::int64_t>(options.every_ms * 1e3)});
  }
  for (std::thread& thread : threads) thread.join();
  Flushed sum;
  for (const Flushed& each : all) {
    sum.decided += each.decided;
    sum.errors += each.errors;
    sum.wrong += each.wrong;
  }
  report.add(
      {"5", std::to_string(flushes) + " x SCRIPT FLUSH, " + text_of(options.every_ms) + " ms apart",
       "0 errors, 0 wrong results",
       std::to_string(sum.errors) + ", " + std::to_string(sum.wrong) + " of " +
           std::to_string(sum.decided),
       sum.errors == 0 && sum.wrong == 0, true});
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
