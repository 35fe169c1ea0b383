// A limit that a fleet shares, on the server that a URL names.
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/redis/redis_url.hpp>

#include <iostream>

using namespace sluice;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: redis_url URL, for example rediss://app:secret@redis.example:6379/0\n";
    return 2;
  }
  try {
    RedisOptions options = parse_redis_url(argv[1]);
    options.on_event = [](const RedisEvent& event) {
      if (event.kind == RedisEvent::Kind::connected) return;
      std::cerr << event.text() << '\n';  // where, and why there is no connection
    };
    const auto store = make_redis_store(std::move(options));
    const TokenBucket bucket(*store, "api", Quota::per_second(10).burst(3));
    for (int i = 0; i < 4; ++i) {
      std::cout << (bucket.try_acquire("alice").allowed ? "go" : "wait") << '\n';
    }
  } catch (const std::exception& error) {  // a URL that is wrong; no server within half a second
    std::cerr << error.what() << '\n';
    return 1;
  }
}
