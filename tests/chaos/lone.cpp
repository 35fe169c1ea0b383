// Figure 9: the time of a lone blocking caller, against a blocking call by hiredis, and against the
// least that any client needs whose replies arrive on a thread of its own.
#include <hiredis/hiredis.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "backends/redis/protocol/protocol.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  int rounds = 21;
  int calls = 2000;
};

cpu_set_t processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    throw std::runtime_error("no list of processors");
  }
  return set;
}

/// The n-th one of the set alone.
cpu_set_t only(const cpu_set_t& set, int n) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set) && n-- == 0) CPU_SET(i, &one);
  }
  return one;
}

/// Threads that start later inherit it.
void bind(pid_t process, const cpu_set_t& set) {
  if (::sched_setaffinity(process, sizeof set, &set) != 0) {
    throw std::runtime_error("a process cannot be bound to a processor");
  }
}

/// The request that the store sends, in bytes; its script is loaded.
std::string request_for(const TokenBucket& bucket, const test::RedisServer& server) {
  const Step step = bucket.acquire_step("alice");
  redis_detail::Request request;
  redis_detail::encode(request, {&step, 1}, 0x5eed, {});
  test::RedisClient client(server.unix_socket());
  client({"SCRIPT", "LOAD", request.script->text});
  std::string bytes;
  redis_detail::append_evalsha(bytes, request);
  return bytes;
}

struct Free {
  void operator()(redisContext* context) const noexcept { ::redisFree(context); }
};
using Hiredis = std::unique_ptr<redisContext, Free>;

Hiredis connect(const test::RedisServer& server) {
  Hiredis connection(::redisConnectUnix(server.unix_socket().c_str()));
  if (!connection || connection->err != 0) throw std::runtime_error("no connection by hiredis");
  return connection;
}

void call(redisContext& connection, const std::string& request) {
  ::redisAppendFormattedCommand(&connection, request.data(), request.size());
  void* reply = nullptr;
  if (::redisGetReply(&connection, &reply) != REDIS_OK) throw std::runtime_error("no reply");
  ::freeReplyObject(reply);
}

/// A caller that sends and sleeps, and a thread that waits for bytes, reads them and wakes it:
/// nothing is parsed, locked or timed.
class HandOver {
 public:
  explicit HandOver(const test::RedisServer& server)
      : connection_(connect(server)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection_->fd, &event);
    reader_ = std::jthread([this] { read(); });
  }
  ~HandOver() {
    ::shutdown(connection_->fd, SHUT_RDWR);  // wakes the thread
    reader_.join();
    ::close(epoll_);
  }
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  void call(const std::string& request) {
    if (::send(connection_->fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      throw std::runtime_error("nothing is sent");
    }
    arrived_.acquire();
  }

 private:
  void read() {
    char bytes[4096];
    for (;;) {
      epoll_event event;
      if (::epoll_wait(epoll_, &event, 1, -1) < 1) continue;
      ssize_t size = 0;
      while ((size = ::recv(connection_->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        arrived_.release();
      }
      if (size == 0) return arrived_.release();
    }
  }

  Hiredis connection_;
  int epoll_;
  std::binary_semaphore arrived_{0};
  std::jthread reader_;
};

/// The median time of each way in microseconds; they take turns.
std::vector<double> measure(const Options& options,
                            const std::vector<std::function<void()>>& ways) {
  std::vector<std::vector<double>> times(ways.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (int n = 0; n < options.calls; ++n) ways[i]();
      const std::chrono::duration<double, std::micro> spent =
          std::chrono::steady_clock::now() - start;
      times[i].push_back(spent.count() / options.calls);
    }
  }
  std::vector<double> medians;
  for (auto& list : times) medians.push_back(quantile(std::move(list), 0.5));
  return medians;
}

void compare(const Options& options, bool is_pinned, Report& report) {
  const test::RedisServer server;
  const cpu_set_t all = processors();
  if (is_pinned) {
    bind(server.pid(), only(all, 1));
    bind(0, only(all, 0));
  }
  RedisOptions redis;
  redis.unix_socket = server.unix_socket();
  redis.call_timeout = 10s;
  const auto store = make_redis_store(redis);
  const TokenBucket bucket(*store, "lone", Quota::per_minute(60'000'007).burst(10'000'000));
  const std::string request = request_for(bucket, server);
  const Hiredis hiredis = connect(server);
  HandOver hand_over(server);
  std::uint64_t errors = 0;
  const std::vector<double> medians =
      measure(options, {[&] { call(*hiredis, request); },
                        [&] {
                          std::error_code error;
                          if (!bucket.try_acquire("alice", 1, error).allowed) ++errors;
                        },
                        [&] { hand_over.call(request); }});
  bind(0, all);
  const std::string run = is_pinned ? "client and server on a processor each" : "unpinned";
  const double ratio = medians[1] / medians[0];
  report.add({"9", run, "a lone blocking call / by hiredis: at most 1.25",
              text_of(ratio) + " (" + text_of(medians[1]) + " us to " + text_of(medians[0]) +
                  "; hand-over between threads alone " + text_of(medians[2] / medians[0]) + ")",
              ratio <= 1.25});
  report.add({"9", run, "0 errors", std::to_string(errors), errors == 0, true});
}

void run_lone(const Options& options, Report& report) {
  const cpu_set_t all = processors();
  if (CPU_COUNT(&all) > 1) compare(options, true, report);
  compare(options, false, report);
}

}  // namespace

void add_lone(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("lone", "9: the time of a lone blocking caller",
                                [options](Report& report) { run_lone(*options, report); });
  command.add("--rounds", options->rounds, "Measurements", 10'000);
  command.add("--calls", options->calls, "Calls in each", 1'000'000);
}

}  // namespace sluice::chaos
