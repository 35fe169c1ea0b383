// A worker whose limit is on the master that Sentinels name. Run two of them, and fail the master
// over: both go on with the next one.
#include <sluice/limiters/token_bucket.hpp>
#include <sluice/redis/redis_url.hpp>

#include <iostream>
#include <sstream>

using namespace sluice;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: failover NAME URL, the URL for example "
                 "redis+sentinel://s1.example,s2.example/mymaster\n";
    return 2;
  }
  const std::string name = argv[1];
  const auto say = [&](const std::string& what) {
    std::ostringstream line;  // written at once, for two workers share the terminal
    line << name << ": " << what << '\n';
    std::cout << line.str() << std::flush;
  };
  try {
    RedisOptions options = parse_redis_url(argv[2]);
    options.on_event = [&](const RedisEvent& event) {
      const bool is_connected = event.kind == RedisEvent::Kind::connected;
      say(is_connected ? "decides at " + event.address : event.text());
    };
    const auto store = make_redis_store(std::move(options));
    const TokenBucket bucket(*store, "api", Quota::per_second(20).burst(5));
    // 200 units at 20 a second, by both workers together: some ten seconds.
    int taken = 0;
    while (taken < 100) {
      std::error_code error;
      if (bucket.acquire("alice", 1, 5s, {}, error)) ++taken;
      if (error) say(error.message());
    }
    say("100 units taken");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
