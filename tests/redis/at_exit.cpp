// A program whose static objects use limits while it exits: they were made before the first call,
// so they end after everything that the library has kept since then, and after this thread's own
// objects. Nobody listens: each call ends in an error that says so. With MALLOC_PERTURB_, what is
// used after it was freed differs.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/redis/redis_store.hpp"
#include "sluice/sluice.hpp"

namespace {

using namespace sluice;
using namespace std::chrono_literals;

/// The calls of each kind that a program makes, and what becomes of them.
std::string fates(const StoreHandle& store) {
  const TokenBucket bucket(store, "a limiter with a name of some length", Quota::per_second(10));
  const ConcurrencyLimiter jobs(store, "jobs", 3);
  const SlidingWindow windows(store, "windows", {{25, 5s}, {400, 2min}});
  const std::string key(100, 'k');
  SeededRng rng(1);
  std::string all;
  const auto tell = [&](const std::error_code& error) { all += error.message() + '\n'; };
  std::error_code error;
  (void)bucket.try_acquire(key, 1, error);
  tell(error);
  (void)bucket.try_acquire(key, 1, RequestId::draw(rng), error);
  tell(error);
  (void)bucket.acquire(key, 1, 1s, {}, error);
  tell(error);
  (void)jobs.try_acquire(key, 1, error);
  tell(error);
  (void)decide(*store, {bucket.acquire_step(key), windows.acquire_step(key)}, error);
  tell(error);
  tell(make_error_code(Errc::unknown));
  try {
    (void)windows.try_acquire(key);
  } catch (const std::system_error& thrown) {
    all += thrown.what();
  }
  return all;
}

std::shared_ptr<Store> store_of(RedisScripts scripts) {
  RedisOptions options;
  options.unix_socket = "/nowhere/redis.sock";
  options.call_timeout = 20ms;
  options.scripts = scripts;
  return make_redis_store(std::move(options));
}

class AtExit {
 public:
  AtExit() = default;
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;
  ~AtExit() {
    for (int i = 0; i < 2; ++i) {
      const std::string last = fates(stores[i]);
      // But for the exception, whose reason is kept for each thread.
      if (last.substr(0, last.rfind('\n')) == first[i].substr(0, first[i].rfind('\n'))) continue;
      std::printf("in main:\n%s\nat exit:\n%s\n", first[i].c_str(), last.c_str());
      std::fflush(stdout);
      ::_exit(1);
    }
  }

  static constexpr const char* reason = "No such file or directory";
  std::shared_ptr<Store> stores[2];
  std::string first[2];
};
AtExit at_exit;

}  // namespace

int main() {
  for (int i = 0; i < 2; ++i) {
    at_exit.stores[i] = store_of(i == 0 ? RedisScripts::eval : RedisScripts::functions);
    at_exit.first[i] = fates(at_exit.stores[i]);
    if (at_exit.first[i].find(AtExit::reason) == std::string::npos) return 2;
  }
}
