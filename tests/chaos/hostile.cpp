// Section 7 of the promises: servers that lie. Whatever one says, every call ends in time with an
// error of the library, and memory is bounded.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/redis/sheet.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;
using test::FakeServer;
using test::Peer;

struct Options {
  int rounds = 5;
};

constexpr Span deadline = 300ms;
constexpr std::size_t callers = 8;
constexpr double most_memory = 3e6;  // a store, its calls, and 1 MiB for each of two connections

struct Lie {
  enum class Place { login, call, map, sentinel };
  enum class Manner { once, endless, close };
  Place place;
  const char* name;
  std::string text;  // `PORT` is the server's own port
  Manner manner = Manner::once;
};

std::string times(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::vector<Lie> make_lies() {
  using enum Lie::Place;
  using enum Lie::Manner;
  const std::string node = "*2\r\n$9\r\n127.0.0.1\r\n:PORT\r\n";
  const auto row = [&](const std::string& first, const std::string& last) {
    return "*3\r\n:" + first + "\r\n:" + last + "\r\n" + node;
  };
  const std::string other = test::bulk(test::payload(0xbad, 1, {Verdict{}}));
  return {
      {login, "says nothing", ""},
      {login, "closes", "", close},
      {login, "speaks HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n"},
      {login, "a line without an end", times(1000, "x"), endless},
      {login, "arrays without an end", times(1000, "*1\r\n"), endless},
      {login, "an array of 10^9", "*1000000000\r\n"},
      {login, "a string of 10^9", "$1000000000\r\n" + times(1000, "x"), endless},
      {login, "an old version", test::hello_reply("6.2.0")},
      {login, "another protocol", ">1\r\n+push\r\n", endless},
      {call, "says nothing", ""},
      {call, "closes", "", close},
      {call, "half a reply, and the end", "$48\r\nabc", close},
      {call, "half a reply, and nothing", "$48\r\nabc"},
      {call, "the reply to another call", other},
      {call, "replies without an end", other, endless},
      {call, "a line without an end", "+" + times(1000, "x"), endless},
      {call, "an error without an end", "-" + times(1000, "x"), endless},
      {call, "a string of 10^9", "$1000000000\r\n" + times(1000, "x"), endless},
      {call, "an array", "*1\r\n:1\r\n"},
      {call, "an array of 10^9", "*1000000000\r\n"},
      {call, "a number", ":1\r\n"},
      {call, "null", "$-1\r\n"},
      {call, "an empty string", "$0\r\n\r\n"},
      {call, "an unknown error", "-NONSENSE\r\n"},
      {call, "loads for ever", "-LOADING\r\n"},
      {call, "loses its scripts for ever", "-NOSCRIPT\r\n"},
      {call, "a cluster that is down", "-CLUSTERDOWN\r\n"},
      {call, "MOVED without a cluster", "-MOVED 1 127.0.0.1:PORT\r\n"},
      {map, "MOVED to itself", "-MOVED 1 127.0.0.1:PORT\r\n"},
      {map, "ASK to itself", "-ASK 1 :PORT\r\n"},
      {map, "MOVED to nonsense", "-MOVED 99999 nowhere\r\n"},
      {map, "MOVED to port 0", "-MOVED 1 127.0.0.1:0\r\n"},
      {map, "overlaps", "*2\r\n" + row("0", "100") + row("100", "16383")},
      {map, "gaps", "*1\r\n" + row("5", "7")},
      {map, "100,000 rows", "*100000\r\n" + times(1000, row("1", "1")), endless},
      {map, "an array of 10^9", "*1000000000\r\n"},
      {map, "says nothing", ""},
      {sentinel, "names itself", node},
      {sentinel, "names nobody", "*-1\r\n"},
      {sentinel, "names nonsense", "*2\r\n$1\r\n?\r\n$1\r\nx\r\n"},
      {sentinel, "an array of 10^9", "*1000000000\r\n"},
      {sentinel, "says nothing", ""},
      {sentinel, "lines without an end", times(1000, "+x"), endless},
  };
}

/// False once the connection is to end.
bool tell(Peer& peer, const Lie& lie, const std::string& text) {
  while (peer.send(text)) {
    if (lie.manner == Lie::Manner::once) return true;
    if (lie.manner == Lie::Manner::close || text.empty()) return false;
  }
  return false;
}

/// A node without a map of its own says MOVED or ASK to calls, else what it says of the map.
void serve(Peer& peer, const Lie& lie, const std::string& text) {
  if (lie.place == Lie::Place::login) {
    while (peer.read() && tell(peer, lie, text)) continue;
  } else if (lie.place == Lie::Place::map && !lie.text.starts_with('-')) {
    while (const auto command = peer.read_behind_login()) {
      const bool goes_on =
          test::is_call(*command) ? peer.send(test::allowing(*command, 1)) : tell(peer, lie, text);
      if (!goes_on) return;
    }
  } else {
    while (peer.read_behind_login() && tell(peer, lie, text)) continue;
  }
}

RedisOptions options_for(const Lie& lie, std::uint16_t port) {
  RedisOptions options;
  options.port = port;
  options.connect_timeout = deadline;
  options.stall_timeout = deadline;
  const RedisAddress address{"127.0.0.1", port};
  if (lie.place == Lie::Place::map) options.cluster = {address};
  if (lie.place == Lie::Place::sentinel) {
    options.sentinel.emplace();
    options.sentinel->master = "mymaster";
    options.sentinel->sentinels = {address};
  }
  if (!options.cluster.empty() || options.sentinel) options.port = RedisOptions{}.port;
  return options;
}

/// What the callers saw, of all lies.
struct Seen {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> untyped{0};  // errors that are not of the library
  std::atomic<std::uint64_t> believed{0};
  std::atomic<std::int64_t> longest{0};
  double most_memory = 0;
};

double allocated() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

void ask(const TokenBucket& bucket, bool may_decide, int rounds, Seen& seen) {
  for (int i = 0; i < rounds; ++i) {
    std::error_code error;
    const std::int64_t began = now_us();
    static_cast<void>(
        decide(bucket.store(), Plan(bucket.acquire_step("alice")).within(deadline), error));
    const std::int64_t spent = now_us() - began;
    std::int64_t before = seen.longest;
    while (before < spent && !seen.longest.compare_exchange_weak(before, spent)) continue;
    ++seen.calls;
    if (error && error.category() != error_category()) ++seen.untyped;
    if (!error && !may_decide) ++seen.believed;
  }
}

void run_lie(const Lie& lie, const Options& options, Seen& seen) {
  std::atomic<std::uint16_t> port{0};
  std::string text;
  FakeServer server(
      [&](Peer& peer, int) {
        while (port == 0) std::this_thread::yield();
        serve(peer, lie, text);
      },
      FakeServer::Serving::at_once);
  text = test::replaced(lie.text, "PORT", std::to_string(server.port()));
  port = server.port();
  const double before = allocated();
  const auto store = make_redis_store(options_for(lie, server.port()));
  const TokenBucket bucket(*store, "hostile", Quota::per_second(1'000).burst(1'000));
  const bool may_decide = lie.place == Lie::Place::map && !lie.text.starts_with('-');
  std::atomic<std::size_t> asking{callers};
  std::vector<std::jthread> crowd;
  for (std::size_t i = 0; i < callers; ++i) {
    crowd.emplace_back([&] {
      ask(bucket, may_decide, options.rounds, seen);
      --asking;
    });
  }
  while (asking > 0) {
    seen.most_memory = std::max(seen.most_memory, allocated() - before);
    std::this_thread::sleep_for(1ms);
  }
}

void run_hostile(const Options& options, Report& report) {
  const std::vector<Lie> lies = make_lies();
  Seen seen;
  for (const Lie& lie : lies) {
    const std::uint64_t wrong = seen.untyped + seen.believed;
    run_lie(lie, options, seen);
    if (seen.untyped + seen.believed != wrong) std::printf("not seen through: %s\n", lie.name);
  }
  const std::string run = std::to_string(lies.size()) + " lies";
  report.add({"7", run, "0 lies believed, 0 errors without a type",
              std::to_string(seen.believed) + ", " + std::to_string(seen.untyped) + " of " +
                  std::to_string(seen.calls) + " calls",
              seen.believed + seen.untyped == 0, true});
  report.at_most("7", run, "every call ends", static_cast<double>(seen.longest) / 1e3, 1e3, " ms",
                 false);
  report.at_most("7", run, "memory", seen.most_memory / 1e6, most_memory / 1e6, " MB", true);
}

}  // namespace

void add_hostile(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("hostile", "7: servers, nodes and Sentinels that lie",
                                [options](Report& report) { run_hostile(*options, report); });
  command.add("--rounds", options->rounds, "Calls of each caller to each server", 1'000);
}

}  // namespace sluice::chaos
