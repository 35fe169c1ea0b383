// Figure 8: what a decision costs the client's process, by TLS and in a cluster.
#include <sys/resource.h>

#include <deque>
#include <optional>

#include "sluice/limiters/token_bucket.hpp"
#include "tests/chaos/figures.hpp"
#include "tests/support/redis_cluster.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::size_t in_flight = 10'000;
  double duration = 3;
  int rounds = 5;
};

/// Calls that ask again as soon as they are answered.
class Stream {
 public:
  Stream(const RedisOptions& options, std::size_t in_flight)
      : store_(make_redis_store(options)),
        bucket_(*store_, "cpu", Quota::per_second(1'000).burst(1'000)) {
    for (std::size_t i = 0; i < in_flight; ++i) calls_.emplace_back(*this, std::to_string(i));
  }
  ~Stream() { over_ = true; }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Microseconds of CPU for each decision, over so long a time.
  [[nodiscard]] double measure(Span span) {
    for (Call& call : calls_) call.ask();
    sleep_for(span / 4);
    const double cpu = cpu_us();
    const std::uint64_t before = decided_;
    sleep_for(span);
    const double spent = cpu_us() - cpu;
    const auto decided = static_cast<double>(decided_ - before);
    over_ = true;
    return decided == 0 ? 1e12 : spent / decided;
  }
  [[nodiscard]] std::uint64_t errors() const noexcept { return errors_; }

 private:
  struct Call {
    Call(Stream& owner, std::string name) : stream(owner), tag(std::move(name)) {}
    void ask() {
      stream.bucket_.store().execute(stream.bucket_.acquire_step(tag), {&Call::hear, this});
    }
    static void hear(void* self, const Outcome& outcome) noexcept {
      Call& call = *static_cast<Call*>(self);
      if (outcome.error) {
        if (!call.stream.over_) ++call.stream.errors_;
        return;
      }
      ++call.stream.decided_;
      if (!call.stream.over_) call.ask();
    }
    Stream& stream;
    std::string tag;
  };

  static double cpu_us() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
  }

  std::atomic<bool> over_{false};
  std::atomic<std::uint64_t> decided_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::deque<Call> calls_;
  std::unique_ptr<RedisStore> store_;  // ends before the calls that it answers
  TokenBucket bucket_;
};

/// The median of each way, which take turns.
class Comparison {
 public:
  explicit Comparison(const Options& options) : options_(options) {}
  void run(const std::vector<RedisOptions>& ways) {
    costs_.resize(ways.size());
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        RedisOptions way = ways[i];
        way.max_in_flight = options_.in_flight + 16;
        way.call_timeout = 20s;
        Stream stream(way, options_.in_flight);
        costs_[i].push_back(stream.measure(seconds(options_.duration)));
        errors_ += stream.errors();
      }
    }
  }
  [[nodiscard]] double cost(std::size_t way) const { return quantile(costs_[way], 0.5); }
  [[nodiscard]] std::uint64_t errors() const noexcept { return errors_; }

 private:
  const Options& options_;
  std::vector<std::vector<double>> costs_;
  std::uint64_t errors_ = 0;
};

void run_cpu(const Options& options, Report& report) {
  const test::Certificates certificates;
  const test::RedisServer plain;
  const test::RedisServer other;
  const std::uint16_t tls_port =
      test::listen_for_tls(other, certificates, "server.pem", {"tls-auth-clients", "no"});
  const test::RedisCluster cluster;
  std::vector<RedisOptions> ways(3);
  ways[0].port = plain.port();
  ways[1].port = tls_port;
  ways[1].tls = RedisTls{.ca_file = certificates.file("ca.pem")};
  for (const std::uint16_t port : cluster.ports()) ways[2].cluster.push_back({"127.0.0.1", port});
  Comparison comparison(options);
  comparison.run(ways);
  const std::string run = std::to_string(options.in_flight) + " in flight";
  const auto compare = [&](std::size_t way, const std::string& name, double most) {
    const double ratio = comparison.cost(way) / comparison.cost(0);
    report.add({"8", run, "CPU of a decision, " + name + ": at most " + text_of(most),
                text_of(ratio) + " (" + text_of(comparison.cost(way)) + " us to " +
                    text_of(comparison.cost(0)) + ")",
                ratio <= most});
  };
  compare(1, "TLS / plain", 2);
  compare(2, "cluster / single", 1.15);
  report.add(
      {"8", run, "0 errors", std::to_string(comparison.errors()), comparison.errors() == 0, true});
}

}  // namespace

void add_cpu(Figures& figures) {
  const auto options = std::make_shared<Options>();
  Command command = figures.add("cpu", "8: CPU of the client, by TLS and in a cluster",
                                [options](Report& report) { run_cpu(*options, report); });
  command.add("--in-flight", options->in_flight, "Calls in flight", 1'000'000);
  command.add("--seconds", options->duration, "Of each measurement");
  command.add("--rounds", options->rounds, "Measurements");
}

}  // namespace sluice::chaos
