// Fleets against an API whose limit nobody knows, that falls to the half and rises again: by
// LearnedRate, and by the adaptive mode of the AWS SDKs in each process. test_calls_client
// "[.figures]" prints the table of docs/learned_rate.md, and the row of its trade-off that the rule
// is.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/sim/remote_store.hpp"
#include "sluice/sluice.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

using Seconds = std::chrono::duration<double>;

/// The hidden limit: so many calls in any span. It is halved, and then what it was.
struct Course {
  Word limit;
  Span span;
  Span falls;
  Span rises;
  Span ends;

  [[nodiscard]] Word limit_at(Span passed) const {
    return passed >= falls && passed < rises ? limit / 2 : limit;
  }
  /// Calls a second.
  [[nodiscard]] double rate_at(Span passed) const {
    return static_cast<double>(limit_at(passed)) / Seconds(span).count();
  }
  /// When a rate has learned the limit that has fallen, and the one that has risen: a window of a
  /// minute admits nothing for half of one at first.
  [[nodiscard]] Span learned_fall() const { return falls + (span > 1s ? 90s : 30s); }
  [[nodiscard]] Span learned_rise() const { return rises + 60s; }
};

struct Demand {
  int processes;
  bool is_zipf;

  /// Of each process, enough for several times the limit together.
  [[nodiscard]] std::vector<int> callers() const {
    std::vector<int> all(static_cast<std::size_t>(processes), std::max(1, 60 / processes));
    if (!is_zipf) return all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = 1 + 100 / static_cast<int>(i + 1);
    return all;
  }
};

/// What an API has accepted and refused, by seconds and by process.
class Api {
 public:
  Api(World& world, const Course& course, std::size_t processes)
      : world_(world),
        course_(course),
        start_(world.now()),
        accepted_(static_cast<std::size_t>(course.ends / 1s) + 1),
        refused_(accepted_.size()),
        of_process_(processes) {}

  bool accepts(std::size_t process) {
    const Span passed = world_.now() - start_;
    while (!log_.empty() && log_.front() <= passed - course_.span) log_.pop_front();
    const auto second = std::min(static_cast<std::size_t>(passed / 1s), accepted_.size() - 1);
    if (std::ssize(log_) >= course_.limit_at(passed)) {
      ++refused_[second];
      return false;
    }
    log_.push_back(passed);
    ++accepted_[second];
    ++of_process_[process];
    return true;
  }

  /// Of the limit, what was accepted from `begin` to `end`.
  [[nodiscard]] double share(Span begin, Span end) const {
    return sum(accepted_, begin, end) / limit(begin, end);
  }
  /// The same without the times in which a rate adapts.
  [[nodiscard]] double adapted_share() const {
    double accepted = 0;
    double limits = 0;
    for (const auto& [begin, end] :
         {std::pair{Span{1min}, course_.falls}, std::pair{course_.learned_fall(), course_.rises},
          std::pair{course_.learned_rise(), course_.ends}}) {
      accepted += sum(accepted_, begin, end);
      limits += limit(begin, end);
    }
    return accepted / limits;
  }
  [[nodiscard]] double refusals(Span begin, Span end) const {
    const double refused = sum(refused_, begin, end);
    return refused / (refused + sum(accepted_, begin, end));
  }
  [[nodiscard]] double jain() const {
    const double all = std::accumulate(of_process_.begin(), of_process_.end(), 0.0);
    double squares = 0;
    for (const double each : of_process_) squares += each * each;
    return all * all / (squares * static_cast<double>(of_process_.size()));
  }

 private:
  [[nodiscard]] double limit(Span begin, Span end) const {
    double limit = 0;
    for (Span at = begin; at < end; at += 1s) limit += course_.rate_at(at);
    return limit;
  }
  static double sum(const std::vector<int>& counts, Span begin, Span end) {
    return std::accumulate(counts.begin() + begin / 1s, counts.begin() + end / 1s, 0.0);
  }

  World& world_;
  Course course_;
  Time start_;
  std::deque<Span> log_;
  std::vector<int> accepted_;
  std::vector<int> refused_;
  std::vector<double> of_process_;
};

/// A process whose calls wait for a rate that the fleet has learned.
class Learning {
 public:
  explicit Learning(World& world)
      : link_(world.connect({sim::Delay::constant(500us), sim::Delay::constant(500us)})),
        call_({Claim(LearnedRate(*link_, "api"), "key")}, {.attempts = 1'000'000}) {}

  template <class Ask>
  net::awaitable<void> call(Ask ask) {
    co_await asio::async_call(call_, [ask]() -> net::awaitable<void> {
      if (!co_await ask()) throw RateLimited();
    });
  }

 private:
  std::unique_ptr<sim::RemoteStore> link_;
  Call call_;
};

/// A process that knows its own calls alone: the client-side rate of the adaptive mode of the AWS
/// SDKs, as botocore/retries/{adaptive,throttling,bucket}.py compute it. Without that mode's pauses
/// between tries, which lower only what one caller sends.
class AwsAdaptive {
 public:
  explicit AwsAdaptive(World& world)
      : world_(world), refilled_(seconds()), bucket_(half(seconds())) {}

  template <class Ask>
  net::awaitable<void> call(Ask ask) {
    while (enabled_) {
      refill();
      if (tokens_ >= 1) break;
      const double wait = (1 - tokens_) / rate_;
      co_await asio::sleep_for(world_.clock(), Span{static_cast<Word>(wait * 1e6) + 1},
                               net::use_awaitable);
    }
    if (enabled_) tokens_ -= 1;
    hear(co_await ask());
  }

 private:
  static constexpr double beta = 0.7;
  static constexpr double scale = 0.4;
  static constexpr double least = 0.5;
  static constexpr double smooth = 0.8;

  [[nodiscard]] double seconds() const { return Seconds(world_.now().time_since_epoch()).count(); }
  static double half(double time) { return std::floor(time * 2) / 2; }

  void refill() {
    const double now = seconds();
    tokens_ = std::min(capacity_, tokens_ + (now - refilled_) * rate_);
    refilled_ = now;
  }
  void measure(double now) {
    ++calls_;
    const double bucket = half(now);
    if (bucket <= bucket_) return;
    measured_ = smooth * calls_ / (bucket - bucket_) + (1 - smooth) * measured_;
    calls_ = 0;
    bucket_ = bucket;
  }
  void hear(bool accepted) {
    const double now = seconds();
    measure(now);
    double rate = 0;
    if (!accepted) {
      peak_ = enabled_ ? std::min(measured_, rate_) : measured_;
      fell_ = now;
      rate = beta * peak_;
      enabled_ = true;
    } else {
      const double k = std::cbrt(peak_ * (1 - beta) / scale);
      rate = scale * std::pow(now - fell_ - k, 3) + peak_;
    }
    refill();
    rate_ = std::max(least, std::min(rate, 2 * measured_));
    capacity_ = std::max(1.0, rate_);
    tokens_ = std::min(tokens_, capacity_);
  }

  World& world_;
  bool enabled_ = false;
  double rate_ = least;
  double capacity_ = 1;
  double tokens_ = 0;
  double refilled_;
  double bucket_;
  double calls_ = 0;
  double measured_ = 0;
  double peak_ = 0;
  double fell_ = 0;
};

/// Processes with callers that call as soon as they have an answer.
template <class Process>
class Fleet {
 public:
  Fleet(std::uint64_t seed, const Course& course, const Demand& demand)
      : world_({.seed = seed}),
        rng_(seed),
        api_(world_, course, static_cast<std::size_t>(demand.processes)) {
    const auto callers = demand.callers();
    for (std::size_t i = 0; i < callers.size(); ++i) {
      processes_.push_back(std::make_unique<Process>(world_));
      for (int caller = 0; caller < callers[i]; ++caller) {
        net::co_spawn(world_, work(i), Rethrow{});
      }
    }
    world_.run_until(world_.now() + course.ends);
  }

  [[nodiscard]] const Api& api() const { return api_; }

 private:
  net::awaitable<void> flight() {
    const Span span{25'000 + static_cast<Word>(rng_.below(25'000))};
    co_await asio::sleep_for(world_.clock(), span, net::use_awaitable);
  }
  net::awaitable<bool> ask(std::size_t process) {
    co_await flight();
    const bool accepted = api_.accepts(process);
    co_await flight();
    co_return accepted;
  }
  net::awaitable<void> work(std::size_t process) {
    for (;;) {
      co_await processes_[process]->call([this, process] { return ask(process); });
    }
  }

  World world_;
  SeededRng rng_;
  Api api_;
  std::vector<std::unique_ptr<Process>> processes_;
};

constexpr Course second{100, 1s, 5min, 10min, 15min};
constexpr Course minute{3'000, 1min, 5min, 10min, 15min};

/// Of a run, or of several on average: shares of the limit that were accepted, of calls that were
/// refused behind the first minute, and the fairness for processes.
struct Figures {
  double all = 0;
  double adapted = 0;
  double after_fall = 0;  ///< in the minute after the limit that has fallen should be known
  double after_rise = 0;  ///< the same of the one that has risen
  double refused = 0;
  double jain = 0;
  // While a rate adapts:
  double begins = 0;
  double falls = 0;
  double rises = 0;

  void add(const Api& api, const Course& course, double part) {
    const Span fallen = course.learned_fall();
    const Span risen = course.learned_rise();
    all += part * api.share(0s, course.ends);
    adapted += part * api.adapted_share();
    after_fall += part * api.share(fallen, fallen + 1min);
    after_rise += part * api.share(risen, risen + 1min);
    refused += part * api.refusals(1min, course.ends);
    jain += part * api.jain();
    begins += part * api.share(0s, 1min);
    falls += part * api.share(course.falls, fallen);
    rises += part * api.share(course.rises, risen);
  }
};

template <class Process>
Figures mean_of(const std::vector<std::uint64_t>& seeds, const Course& course,
                const Demand& demand) {
  Figures mean;
  for (const std::uint64_t seed : seeds) {
    mean.add(Fleet<Process>(seed, course, demand).api(), course,
             1 / static_cast<double>(seeds.size()));
  }
  return mean;
}

template <class Process>
void print(const char* name, const char* limit, const Course& course, const Demand& demand) {
  const Figures run = mean_of<Process>({7}, course, demand);
  std::printf("| %s | %s | %d | %s | %.2f | %.2f | %.2f | %.2f | %.2f %% | %.3f |\n", name, limit,
              demand.processes, demand.is_zipf ? "Zipf" : "equal", run.all, run.adapted,
              run.after_fall, run.after_rise, 100 * run.refused, run.jain);
  std::fflush(stdout);
}

template <class Process>
void print_all(const char* name) {
  for (const int processes : {1, 20, 200}) {
    for (const bool is_zipf : {false, true}) {
      if (processes == 1 && is_zipf) continue;
      print<Process>(name, "100 in 1 s", second, {processes, is_zipf});
      print<Process>(name, "3,000 in 1 min", minute, {processes, is_zipf});
    }
  }
}

std::vector<std::uint64_t> draw(Random& random, std::size_t runs) {
  std::vector<std::uint64_t> seeds(runs);
  for (std::uint64_t& seed : seeds) seed = random.next();
  return seeds;
}

/// The means of 8 seeds with 20 processes: what the rule gives in the table of the trade-off, and
/// what is accepted while it adapts.
void print_means() {
  const std::vector<std::uint64_t> seeds{1, 2, 3, 4, 5, 6, 7, 8};
  const auto a = mean_of<Learning>(seeds, second, {20, false});
  const auto b = mean_of<Learning>(seeds, minute, {20, false});
  std::printf("| %.3f, %.3f | %.2f, %.2f | %.2f %%, %.2f %% |\n", a.adapted, b.adapted,
              a.after_fall, b.after_fall, 100 * a.refused, 100 * b.refused);
  for (const Figures& each : {a, b}) {
    std::printf("in all %.2f: at first %.2f, at the fall %.2f, at the rise %.2f\n", each.all,
                each.begins, each.falls, each.rises);
  }
}

}  // namespace

TEST_CASE("a fleet uses a limit a second that nobody knows, falls with it and rises again",
          "[calls][statistics]") {
  Random random("a fleet uses a limit a second that nobody knows, falls with it and rises again");
  CAPTURE(random.repeat());
  const auto demand =
      GENERATE(values<Demand>({{1, false}, {20, false}, {20, true}, {200, false}, {200, true}}));
  CAPTURE(demand.processes, demand.is_zipf);
  const Figures mean =
      mean_of<Learning>(draw(random, demand.processes < 200 ? 3 : 1), second, demand);
  CHECK(mean.all >= 0.90);
  CHECK(mean.adapted >= 0.95);
  // 0.94 where the rate has fallen once more within that minute.
  CHECK(mean.after_fall >= 0.935);
  CHECK(mean.after_rise >= 0.955);
  CHECK(mean.refused <= 0.0045);
  if (!demand.is_zipf) CHECK(mean.jain >= 0.999);
}

// Of some seeds, the rate falls once more within the minute that is judged: of single runs, 0.91
// after the fall and 0.86 after the rise are the least, and 1.1 % of 429s the most of 40.
TEST_CASE("a fleet uses a limit a minute that nobody knows, falls with it and rises again",
          "[calls][statistics]") {
  Random random("a fleet uses a limit a minute that nobody knows, falls with it and rises again");
  CAPTURE(random.repeat());
  const auto demand =
      GENERATE(values<Demand>({{1, false}, {20, false}, {20, true}, {200, false}, {200, true}}));
  CAPTURE(demand.processes, demand.is_zipf);
  const Figures mean = mean_of<Learning>(draw(random, 3), minute, demand);
  CHECK(mean.all >= 0.925);
  CHECK(mean.adapted >= 0.98);
  CHECK(mean.after_fall >= 0.93);
  CHECK(mean.after_rise >= 0.92);
  CHECK(mean.refused <= 0.0105);
  if (!demand.is_zipf) CHECK(mean.jain >= 0.999);
}

TEST_CASE("figures of a limit that nobody knows", "[.figures]") {
  print_all<Learning>("`LearnedRate`");
  print_all<AwsAdaptive>("AWS, adaptive");
  print_means();
}

}  // namespace sluice::test
