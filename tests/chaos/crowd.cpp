// Figure 7: many stores, and a server that restarts.
#include <deque>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_admin.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::size_t stores = 500;
  std::size_t processes = 5;
  int times = 5;
  double dead = 1;
};

constexpr std::size_t most_stores = 2'000;

/// When each store last had a decision, in memory that the processes share.
struct Served {
  std::array<std::atomic<std::int64_t>, most_stores> last{};
};

/// One store, with one call in flight at any time.
class Member {
 public:
  Member(const RedisOptions& options, std::atomic<std::int64_t>& last)
      : last_(last),
        store_(make_redis_store(options)),
        bucket_(*store_, "crowd", Quota::per_second(1'000).burst(1'000)) {}

  void ask() {
    if (is_asking_.exchange(true)) return;
    decide_then(*store_, Plan(bucket_.acquire_step("all")).within(2s),
                [this](std::error_code error, const Decision&) {
                  if (!error) last_ = now_us();
                  is_asking_ = false;
                });
  }

 private:
  std::atomic<std::int64_t>& last_;
  std::atomic<bool> is_asking_{false};
  std::unique_ptr<RedisStore> store_;
  TokenBucket bucket_;
};

void run_members(const RedisOptions& options, Served& served, std::size_t first,
                 std::size_t count) {
  std::deque<Member> members;
  for (std::size_t i = 0; i < count; ++i) members.emplace_back(options, served.last[first + i]);
  for (;;) {  // until this process is killed
    for (Member& member : members) member.ask();
    sleep_for(20ms);
  }
}

[[nodiscard]] double connections_of(const test::RedisServer& server) {
  test::RedisClient admin(server.unix_socket());
  const std::string text = admin({"INFO", "stats"}).text;
  return std::stod(test::field_of(text, "total_connections_received"));
}

[[nodiscard]] std::size_t served_since(const Served& served, std::size_t stores,
                                       std::int64_t since) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < stores; ++i) count += served.last[i] > since ? 1U : 0U;
  return count;
}

/// Waits until all stores were served; when that was.
std::int64_t await_all(const Served& served, std::size_t stores, std::int64_t since) {
  const std::int64_t end = since + 30'000'000;
  while (served_since(served, stores, since) < stores && now_us() < end) sleep_for(5ms);
  return now_us();
}

void run_crowd(const Options& options, Report& report) {
  test::RedisServer server({"maxclients 10000"});
  RedisOptions store_options;
  store_options.port = server.port();
  const Shared<Served> served;
  Children children;
  const std::size_t each = options.stores / options.processes;
  const std::size_t stores = each * options.processes;
  for (std::size_t i = 0; i < options.processes; ++i) {
    children.start([&, i] { run_members(store_options, *served, i * each, each); });
  }
  await_all(*served, stores, now_us());
  std::vector<double> connects;
  std::vector<double> waits;
  std::size_t missing = 0;
  for (int i = 0; i < options.times; ++i) {
    server.kill();
    sleep_for(seconds(options.dead));
    server.start();
    const std::int64_t back = now_us();
    const std::int64_t all = await_all(*served, stores, back);
    waits.push_back(static_cast<double>(all - back) / 1e6);
    sleep_for(std::max(Span{0}, Span{back + 1'000'000 - all}));
    constexpr double own = 2;  // of the fixture, and of this question
    connects.push_back((connections_of(server) - own) / static_cast<double>(stores));
    missing += stores - served_since(*served, stores, back);
  }
  const std::string run =
      std::to_string(stores) + " stores, " + std::to_string(options.times) + " restarts";
  report.at_most("7", run, "connects of each store in the first second", quantile(connects, 1), 1.5,
                 "");
  report.at_most("7", run, "all served", quantile(waits, 1), 2, " s");
  report.add({"7", run, "each store decides again", std::to_string(missing) + " do not",
              missing == 0, true});
}

}  // namespace

void add_crowd(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("crowd", "7: many stores, and a server that restarts",
                                [options](Report& report) { run_crowd(*options, report); });
  command.add("--stores", options->stores, "Stores in all", most_stores);
  command.add("--processes", options->processes, "Processes that they are in", 64);
  command.add("--times", options->times, "Restarts");
  command.add("--dead", options->dead, "Seconds without a server");
}

}  // namespace sluice::chaos
