// Figure 5: a connection is cut behind each byte, in login and in calls, and the server says what
// was charged.
#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::size_t stride = 1;
  std::size_t long_cuts = 400;
};

constexpr Word capacity = 1'000;
constexpr std::size_t calls = 3;

/// How a connection is made, and what the server has when a call comes.
struct Way {
  std::string name;
  bool tls = false;
  RedisScripts scripts = RedisScripts::eval;
  bool is_lost = false;  ///< the script, or the library
  bool is_long = false;  ///< its scripts are sent: many bytes
};

struct Answer {
  std::error_code error;
  Decision decision;
};

/// What the cuts have led to.
struct Verdicts {
  std::uint64_t cuts = 0;
  std::uint64_t decided = 0, unknown = 0, not_executed = 0;
  std::uint64_t wrong = 0;
  std::uint64_t hung = 0;
};

class Cutter {
 public:
  explicit Cutter(const Way& way)
      : way_(way),
        proxy_(way.tls ? test::listen_for_tls(server_, certificates_, "server.pem",
                                              {"tls-auth-clients", "no"})
                       : server_.port()),
        direct_(make_redis_store(direct_options())) {
    if (way_.scripts == RedisScripts::functions) load();
  }

  /// One store, one cut, three calls at once; then what the server holds.
  void cut(const test::ProxyRule& rule) {
    if (way_.is_lost) lose();
    if (!way_.is_lost && way_.scripts == RedisScripts::eval && verdicts_.cuts == 0) warm_up();
    proxy_.set_once(rule);
    ++verdicts_.cuts;
    const auto store = make_redis_store(options());
    const TokenBucket bucket(*store, "cut", Quota::per(1, 30min).burst(capacity));
    const auto answers = ask(bucket);
    for (std::size_t i = 0; i < calls; ++i) judge(bucket, i, answers[i]);
  }

  /// The bytes of one whole run of login and calls.
  [[nodiscard]] std::pair<std::size_t, std::size_t> measure() {
    cut({});
    const std::size_t up = proxy_.bytes_up();
    const std::size_t down = proxy_.bytes_down();
    cut({});
    return {proxy_.bytes_up() - up, proxy_.bytes_down() - down};
  }

  [[nodiscard]] const Verdicts& verdicts() const noexcept { return verdicts_; }
  [[nodiscard]] std::uint64_t made() const noexcept { return proxy_.cuts(); }

 private:
  [[nodiscard]] RedisOptions direct_options() const {
    RedisOptions options;
    options.unix_socket = server_.unix_socket();
    options.call_timeout = 20s;
    return options;
  }
  [[nodiscard]] RedisOptions options() const {
    RedisOptions options;
    options.port = proxy_.port();
    options.scripts = way_.scripts;
    options.reconnect_max = 10ms;
    options.call_timeout = 20s;
    if (way_.tls) options.tls = RedisTls{.ca_file = certificates_.file("ca.pem")};
    return options;
  }

  void load() {
    const std::string_view text = redis_functions();
    test::RedisClient(server_.unix_socket())({"FUNCTION", "LOAD", "REPLACE", text});
  }
  void lose() {
    test::RedisClient admin(server_.unix_socket());
    admin({"SCRIPT", "FLUSH"});
    admin({"FUNCTION", "FLUSH"});
  }
  /// The direct store has the server learn the script.
  void warm_up() {
    const TokenBucket bucket(*direct_, "cut", Quota::per(1, 30min).burst(capacity));
    const Step step = bucket.acquire_step("warm");
    static_cast<void>(decide(*direct_, Plan(step).idempotent({1, 1})));
    static_cast<void>(bucket.try_acquire("warm"));
  }

  [[nodiscard]] std::string tag(std::size_t i) const {
    return std::to_string(verdicts_.cuts) + "-" + std::to_string(i);
  }
  [[nodiscard]] static Word cost(std::size_t i) noexcept { return static_cast<Word>(i) + 1; }
  [[nodiscard]] RequestId id() const noexcept { return {7, verdicts_.cuts}; }

  /// The last call has an id.
  std::array<Answer, calls> ask(const TokenBucket& bucket) {
    struct Pending {
      std::array<Answer, calls> answers;
      std::atomic<std::size_t> count{0};
    };
    const auto pending = std::make_shared<Pending>();
    for (std::size_t i = 0; i < calls; ++i) {
      const std::string key = tag(i);
      const Step step = bucket.acquire_step(key, cost(i));
      const Plan plan = i + 1 == calls ? Plan(step).idempotent(id()) : Plan(step);
      decide_then(bucket.store(), plan,
                  [pending, i](std::error_code error, const Decision& decision) {
                    pending->answers[i] = {error, decision};
                    ++pending->count;
                  });
    }
    const std::int64_t patience = now_us() + 30'000'000;
    while (pending->count < calls && now_us() < patience) sleep_for(50us);
    verdicts_.hung += calls - std::min<std::size_t>(calls, pending->count);
    return pending->answers;
  }

  void judge(const TokenBucket& bucket, std::size_t i, Answer answer) {
    const std::string key = tag(i);
    if (i + 1 == calls && answer.error == Failure::unknown) {
      // Under its id it may be asked again, and is charged once.
      ++verdicts_.unknown;
      const Step step = bucket.acquire_step(key, cost(i));
      answer.decision = decide(bucket.store(), Plan(step).idempotent(id()), answer.error);
    }
    const TokenBucket seen(*direct_, "cut", bucket.quota());
    const Word charged = capacity - seen.peek(key).remaining;
    bool is_right = true;
    if (!answer.error) {
      ++verdicts_.decided;
      is_right = answer.decision.allowed && charged == cost(i) &&
                 answer.decision.remaining == capacity - cost(i);
    } else if (answer.error == Failure::unknown) {
      ++verdicts_.unknown;
      is_right = charged == 0 || charged == cost(i);
    } else {
      ++verdicts_.not_executed;
      is_right = charged == 0;
    }
    if (!is_right) report_wrong(i, answer, charged);
  }

  void report_wrong(std::size_t i, const Answer& answer, Word charged) {
    ++verdicts_.wrong;
    std::fprintf(stderr, "%s, cut %llu, call %zu: %s, remaining %lld, charged %lld\n",
                 way_.name.c_str(), static_cast<unsigned long long>(verdicts_.cuts), i,
                 answer.error ? answer.error.message().c_str() : "decided",
                 static_cast<long long>(answer.decision.remaining),
                 static_cast<long long>(charged));
  }

  Way way_;
  test::Certificates certificates_;
  test::RedisServer server_;
  test::TcpProxy proxy_;
  std::unique_ptr<RedisStore> direct_;
  Verdicts verdicts_;
};

void run_way(const Way& way, const Options& options, Report& report) {
  Cutter cutter(way);
  const auto [up, down] = cutter.measure();
  const std::size_t stride =
      way.is_long ? std::max(options.stride, (up + down) / options.long_cuts) : options.stride;
  for (std::size_t n = 0; n < up; n += stride) cutter.cut({.cut_up = n});
  for (std::size_t n = 0; n < down; n += stride) cutter.cut({.cut_down = n});
  for (std::size_t n = 0; n < up; n += stride * 7) {
    cutter.cut({.cut_up = n, .single_bytes = true});
  }
  const Verdicts& seen = cutter.verdicts();
  const std::string of = std::to_string(up) + " + " + std::to_string(down) + " bytes, " +
                         (stride == 1 ? "each" : "every " + std::to_string(stride) + "th");
  report.add({"5", "cut, " + way.name + " (" + of + ")", "0 wrong results, 0 calls hung",
              std::to_string(seen.wrong) + ", " + std::to_string(seen.hung) + " in " +
                  std::to_string(cutter.made()) + " cuts; " + std::to_string(seen.decided) +
                  " decided, " + std::to_string(seen.unknown) + " unknown, " +
                  std::to_string(seen.not_executed) + " not executed",
              seen.wrong == 0 && seen.hung == 0, true});
}

}  // namespace

void add_cuts(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command =
      figures.add("cuts", "5: the connection is cut behind each byte", [options](Report& report) {
        for (const bool tls : {false, true}) {
          const std::string way = tls ? "TLS" : "plain";
          using enum RedisScripts;
          run_way({way, tls}, *options, report);
          run_way({way + ", script lost", tls, eval, true, true}, *options, report);
          run_way({way + ", functions", tls, functions}, *options, report);
          run_way({way + ", functions lost", tls, functions, true, true}, *options, report);
        }
      });
  command.add("--stride", options->stride, "Bytes from one cut to the next", 1'000'000);
  command.add("--long-cuts", options->long_cuts, "Cuts where scripts are sent, about so many",
              1'000'000);
}

}  // namespace sluice::chaos
