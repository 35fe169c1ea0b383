// Random queues in virtual time, judged by the checkers of the kit: every wait ends once and in
// time, in its turn, and nothing that could be granted stays while somebody waits. Threading:
// everything on the thread that moves the clock.
#include <vector>

#include "sluice/testing/invariants.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using sluice::testing::Wait;

namespace {

/// A store that can be taken away: it answers, but decides nothing.
struct Unsteady final : Store {
  void execute(const Plan& plan, Completion done) noexcept override {
    if (down) return done.fail(Errc::not_connected);
    inner->execute(plan, std::move(done));
  }
  Clock& clock() noexcept override { return time; }

  VirtualClock time;
  std::unique_ptr<Store> inner = make_virtual_store(time);
  bool down = false;
};

/// Who gives up how often: one in so many; 0: nobody.
struct Habits {
  std::size_t waits = 400;
  Word most_cost = 1;
  std::size_t has_deadline = 0;
  std::size_t is_cancelled = 0;
  int priorities = 1;
  int flows = 1;
  Span pause = 250ms;  ///< between arrivals, at most
};

/// One queue of random callers, and what they saw.
template <class L>
class Line {
 public:
  using Request = detail::ClaimedLimits;
  using Grant = typename L::Grant;
  using Kept = std::function<void(std::size_t wait, Grant grant)>;

  Line(const L& limiter, VirtualClock& clock, Random& random)
      : limiter_(limiter), clock_(clock), random_(random) {}

  std::vector<Wait> run(const Habits& habits, const std::function<Request(Word cost)>& request,
                        Kept keep = {}) {
    waits_.resize(habits.waits);
    for (std::size_t i = 0; i < habits.waits; ++i) {
      clock_.advance(Span{random_.between(0, habits.pause.count())});
      begin(i, habits, request, keep);
      if (habits.is_cancelled > 0 && random_.one_in(habits.is_cancelled)) {
        probes_[random_.below(i + 1)]->cancel();
      }
    }
    while (clock_.advance_to_next()) {
    }
    return waits_;
  }

 private:
  void begin(std::size_t i, const Habits& habits, const std::function<Request(Word)>& request,
             const Kept& keep) {
    Wait& wait = waits_[i];
    wait.began = clock_.now();
    wait.cost = random_.between(1, habits.most_cost);
    wait.priority = static_cast<int>(random_.below(static_cast<std::size_t>(habits.priorities)));
    wait.flow = static_cast<int>(random_.below(static_cast<std::size_t>(habits.flows)));
    if (habits.has_deadline > 0 && random_.one_in(habits.has_deadline)) {
      wait.deadline = wait.began + Span{random_.between(0, 20'000'000)};
    }
    const auto over = [this, i, keep](std::error_code error, Grant grant) {
      Wait& ended = waits_[i];
      ++ended.completions;
      ended.ended = clock_.now();
      ended.end = error == Errc::cancelled ? Wait::End::cancelled
                  : error                  ? Wait::End::failed
                  : grant                  ? Wait::End::granted
                                           : Wait::End::refused;
      if (keep && ended.end == Wait::End::granted) keep(i, std::move(grant));
    };
    probes_.push_back(wait_for(limiter_, request(wait.cost), wait.deadline, over,
                               {.priority = wait.priority, .flow = std::to_string(wait.flow)}));
  }

  const L& limiter_;
  VirtualClock& clock_;
  Random& random_;
  std::vector<Wait> waits_;
  std::vector<std::shared_ptr<Probe<L>>> probes_;
};

template <class L>
std::vector<Wait> run_line(const L& limiter, VirtualClock& clock, Random& random,
                           const Habits& habits) {
  return Line<L>(limiter, clock, random).run(habits, [&](Word cost) {
    return request_of(limiter, "a", cost);
  });
}

std::size_t count(const std::vector<Wait>& waits, Wait::End end) {
  return static_cast<std::size_t>(std::ranges::count(waits, end, &Wait::end));
}

void require_kept(const testing::Checked& checked) {
  INFO((checked ? checked->what : ""));
  REQUIRE_FALSE(checked);
}

/// What a bucket of five grants when five are asked for at once.
constexpr testing::RateBound of_bucket{.burst = 10, .units = 10, .period = 1s};
/// Windows give their whole limit at once, and a big request leaves up to its cost unused; the
/// counter estimates up to one window's limit too high.
constexpr testing::RateBound of_windows{.burst = 45, .units = 8, .period = 1s};

/// A queue of each limiter over keys that can be waited for, about as much asked as there is.
template <class Visit>
void for_each_limiter(Unsteady& store, Visit&& visit) {
  visit(TokenBucket(store, "bucket", Quota::per_second(10).burst(5)), of_bucket);
  visit(SlidingWindow(store, "windows", {{20, 2s}, {100, 12s}}), of_windows);
  visit(FixedWindow(store, "fixed", 20, Calendar::every(2s)), of_windows);
  visit(SlidingWindowCounter(store, "counter", {20, 2s}), of_windows);
  const SharedTokenBucket shared(store, "shared");
  shared.configure("a", Quota::per_second(10).burst(5));
  visit(shared, of_bucket);
}

/// Gives its lease back when its timer rings.
struct Job {
  Job(Lease its, std::vector<testing::LeaseRecord>& log, VirtualClock& time, std::uint64_t count)
      : lease(std::move(its)), events(log), clock(time), number(count) {}

  static void done(void* self) noexcept {
    Job& job = *static_cast<Job*>(self);
    job.events.push_back(
        {.at = job.clock.now(), .act = testing::LeaseRecord::Act::released, .lease = job.number});
    job.lease.release_later();
  }

  TimerCallback timer{&Job::done, this};
  Lease lease;
  std::vector<testing::LeaseRecord>& events;
  VirtualClock& clock;
  std::uint64_t number;
};

struct Worker {
  static void ring(void* self) noexcept { static_cast<Worker*>(self)->work(); }
  TimerCallback timer{&Worker::ring, this};
  std::function<void()> work;
};

}  // namespace

TEST_CASE("whoever waits is told the end once, by the deadline to the tick, and in turn",
          "[waiting][L3][L5]") {
  Random random("whoever waits is told the end once, by the deadline to the tick, and in turn");
  CAPTURE(random.repeat());
  std::size_t refused = 0;
  std::size_t cancelled = 0;
  for (std::size_t round = scaled(10, 2); round > 0; --round) {
    Unsteady store;
    for_each_limiter(store, [&](const auto& limiter, const testing::RateBound&) {
      CAPTURE(limiter.name());
      const auto waits = run_line(limiter, store.time, random,
                                  {.most_cost = 5,
                                   .has_deadline = 3,
                                   .is_cancelled = 8,
                                   .priorities = static_cast<int>(random.between(1, 3)),
                                   .flows = static_cast<int>(random.between(1, 3))});
      require_kept(testing::check_waits_end(waits));
      require_kept(testing::check_order(waits));
      refused += count(waits, Wait::End::refused);
      cancelled += count(waits, Wait::End::cancelled);
    });
  }
  CHECK(refused > 0);
  CHECK(cancelled > 0);
}

TEST_CASE("what could be granted is granted while somebody waits", "[waiting][L2]") {
  Random random("what could be granted is granted while somebody waits");
  CAPTURE(random.repeat());
  for (std::size_t round = scaled(10, 2); round > 0; --round) {
    Unsteady store;
    for_each_limiter(store, [&](const auto& limiter, const testing::RateBound& bound) {
      CAPTURE(limiter.name());
      const auto waits = run_line(limiter, store.time, random,
                                  {.most_cost = 5,
                                   .priorities = static_cast<int>(random.between(1, 3)),
                                   .flows = static_cast<int>(random.between(1, 3)),
                                   .pause = 400ms});
      REQUIRE(count(waits, Wait::End::granted) == waits.size());
      require_kept(testing::check_waits_served(waits, bound));
    });
  }
}

TEST_CASE("a place that comes back, or whose holder vanished, goes to the first waiter at once",
          "[waiting][L4][L5][leases]") {
  Random random(
      "a place that comes back, or whose holder vanished, goes to the first waiter at once");
  CAPTURE(random.repeat());
  using testing::LeaseRecord;
  std::size_t vanished = 0;
  for (std::size_t round = scaled(20, 3); round > 0; --round) {
    Unsteady store;
    SeededRng ids(1);
    const ConcurrencyLimiter jobs(store, "jobs", 4, {.ttl = 5s, .rng = &ids});
    std::vector<LeaseRecord> events;
    std::vector<std::unique_ptr<Job>> held;
    std::vector<Word> weights;
    std::vector<Wait> waits =
        Line<ConcurrencyLimiter>(jobs, store.time, random)
            .run(
                {.waits = 200, .most_cost = 3, .pause = 1500ms},
                [&](Word cost) {
                  weights.push_back(cost);
                  return request_of(jobs, "a", cost);
                },
                [&](std::size_t i, Lease lease) {
                  events.push_back({.at = store.time.now(),
                                    .lease = i,
                                    .weight = weights[i],
                                    .until = lease.expires_at(),
                                    .fence = lease.fence()});
                  held.push_back(std::make_unique<Job>(std::move(lease), events, store.time, i));
                  if (random.one_in(4)) {
                    ++vanished;  // nobody gives it back
                  } else {
                    store.time.set_timer(held.back()->timer,
                                         store.time.now() + Span{random.between(1, 4'900'000)});
                  }
                });
    require_kept(testing::check_leases(events, 4));
    require_kept(testing::check_waits_end(waits));
    require_kept(testing::check_order(waits));
    require_kept(testing::check_places(waits, events, 4));
  }
  CHECK(vanished > 0);
}

TEST_CASE("a queue moves again within a second after its store is back", "[waiting][L6]") {
  Unsteady store;
  const TokenBucket bucket(store, "bucket", Quota::per_second(10).burst(1));
  std::vector<Wait> waits;
  std::vector<std::shared_ptr<Probe<TokenBucket>>> probes;
  std::vector<std::unique_ptr<Worker>> workers;
  const Time start = store.time.now();
  for (int i = 0; i < 20; ++i) {
    workers.push_back(std::make_unique<Worker>());
    Worker& worker = *workers.back();
    worker.work = [&] {
      const std::size_t number = waits.size();
      waits.push_back({.began = store.time.now()});
      probes.push_back(wait_for(bucket, Wanted{"a", 1}, Deadline::never(),
                                [&, number](std::error_code error, const Reservation& grant) {
                                  Wait& wait = waits[number];
                                  ++wait.completions;
                                  wait.ended = store.time.now();
                                  wait.end = error   ? Wait::End::failed
                                             : grant ? Wait::End::granted
                                                     : Wait::End::refused;
                                  store.time.set_timer(worker.timer, wait.ended + 100ms);
                                }));
    };
    worker.work();
  }
  const auto run_until = [&](Time end) {
    while (store.time.now() < end && store.time.advance_to_next()) {
    }
  };
  run_until(start + 20s);
  store.down = true;
  run_until(start + 40s);
  store.down = false;
  run_until(start + 90s);
  bucket.cancel_waits();
  for (auto& worker : workers) store.time.cancel_timer(worker->timer);
  const testing::RateBound bound{.burst = 2, .units = 10, .period = 1s};
  CHECK(count(waits, Wait::End::failed) > 100);
  require_kept(testing::check_recovery(waits, start + 40s, 1s, bound));
}

}  // namespace sluice::test
