// Random callers of random limits at once: whatever they do, every grant is within every limit, and
// no caller is forgotten.
#include <map>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/calls/charges.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

constexpr Word bucket_burst = 3;
constexpr Word bucket_rate = 2;  // a second
constexpr Word window_limit = 5;
constexpr Span window_span = 2s;
constexpr Word fixed_limit = 6;
constexpr Word place_count = 3;

/// What the callers of one kind claim.
struct Kind {
  bool bucket = false;
  bool window = false;
  bool fixed = false;
  bool places = false;
  bool gate = false;
};

class Crowd {
 public:
  explicit Crowd(Random& random) : random_(random), late_(random.one_in(2)) {
    if (late_) store_.fail_all(testing::Fault::none().late(20ms));
  }

  void act() {
    const std::uint64_t choice = random_.below(10);
    if (choice < 5) {
      arrive();
    } else if (choice < 7) {
      clock_.advance(Span{random_.between(0, 700'000)});
    } else if (choice == 7 && !held_.empty()) {
      release(held_.extract(held_.begin()).mapped());
    } else if (choice == 8 && !probes_.empty()) {
      const auto i = random_.below(probes_.size());
      cancelled_[i] = true;
      probes_[i]->cancel();
    } else if (choice == 9 && random_.one_in(3)) {
      const Span span{random_.between(1, 3'000'000)};
      Gates(*inner_, "g", {"account"}, {.ramp = 0s, .spacing = 0s}).close(scope_, span);
      closures_.emplace_back(clock_.now(), clock_.now() + span);
    }
  }
  void end() {
    store_.heal();
    for (int i = 0; i < 3'000; ++i) {
      clock_.advance(250ms);
      for (auto& [name, lease] : std::exchange(held_, {})) release(lease);
    }
  }
  void judge() {
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      CAPTURE(i);
      REQUIRE(probes_[i]->times_over() == 1);
      if (!cancelled_[i] && is_patient_[i]) CHECK(is_granted_[i]);
    }
    for (const Span span : {1ms, 500ms, 1'000ms, 3'700ms, 10'000ms}) {
      CHECK(busiest(bucket_, span) <= bucket_burst + bucket_rate * span / 1s + 1);
    }
    CHECK(busiest(window_, window_span) <= window_limit);
    std::map<Word, Word> seconds;
    for (const Charge& charge : fixed_) {
      seconds[to_word(charge.at) / 1'000'000] += charge.cost;
    }
    for (const auto& [second, sum] : seconds) CHECK(sum <= fixed_limit);
    for (auto& [kind, order] : orders_) CHECK(std::is_sorted(order.begin(), order.end()));
  }

 private:
  void arrive() {
    const std::uint64_t bits = 1 + random_.below(31);
    const Kind kind{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0,
                    (bits & 16) != 0};
    const Word cost = random_.between(1, 2);
    std::vector<Claim> claims;
    if (kind.bucket) claims.emplace_back(buckets_, "a", cost);
    if (kind.window) claims.emplace_back(windows_, "a", cost);
    if (kind.fixed) claims.emplace_back(fixed_windows_, "a", cost);
    if (kind.places) claims.emplace_back(jobs_, "a");
    if (kind.gate) claims.emplace_back(gates_, scope_);
    const bool is_reversed = random_.one_in(2);
    if (is_reversed) std::reverse(claims.begin(), claims.end());
    // The place is behind all but the gate, or before.
    const std::size_t behind = kind.gate ? 1 : 0;
    const std::size_t place = is_reversed ? behind : claims.size() - 1 - behind;
    const bool patient = claims.size() > 1 || random_.one_in(2);
    const std::size_t name = probes_.size();
    cancelled_.push_back(false);
    is_patient_.push_back(patient);
    is_granted_.push_back(false);
    const Deadline deadline =
        patient ? Deadline::never() : Deadline(Span{random_.between(0, 5'000'000)});
    probes_.push_back(nullptr);
    probes_[name] = wait_for(Several{}, detail::limits_of(claims), deadline,
                             [=, this](std::error_code error, Grants grants) {
                               if (error || !grants) return;
                               if (kind.places) hold(name, std::move(grants.get<Lease>(place)));
                               granted(name, kind, cost, bits, grants);
                             });
  }
  void hold(std::size_t name, Lease lease) {
    CHECK(static_cast<Word>(held_.size()) < place_count);
    held_.emplace(name, std::move(lease));
  }
  static void release(Lease& lease) { lease.release_later(); }
  void granted(std::size_t name, const Kind& kind, Word cost, std::uint64_t bits,
               const Grants& grants) {
    is_granted_[name] = true;
    const Time asked = grants.decision().at + grants.decision().retry_after;
    if (kind.bucket) bucket_.push_back({asked, cost});
    if (kind.window) window_.push_back({asked, cost});
    if (kind.fixed) fixed_.push_back({asked, cost});
    for (const auto& [from, until] : closures_) {
      if (kind.gate) CHECK((asked <= from || asked >= until));
    }
    // A caller with a late answer may be overtaken by those whose requests are under way with it.
    if (!late_) orders_[bits * 2 + static_cast<std::uint64_t>(cost)].push_back(name);
  }

  Random& random_;
  bool late_;
  VirtualClock clock_;
  std::unique_ptr<Store> inner_ = make_virtual_store(clock_);
  testing::FaultyStore store_{*inner_};
  TokenBucket buckets_{store_, "b", Quota::per_second(bucket_rate).burst(bucket_burst)};
  SlidingWindow windows_{store_, "w", {{window_limit, window_span}}};
  FixedWindow fixed_windows_{store_, "f", fixed_limit, Calendar::every(1s)};
  ConcurrencyLimiter jobs_{store_, "j", place_count, {.ttl = 12h}};
  Gates gates_{store_, "g", {"account"}, {.ramp = 0s, .spacing = 0s}};
  Scope scope_ = gates_.scope("account", 1);
  std::vector<std::pair<Time, Time>> closures_;
  std::vector<std::shared_ptr<Probe<Several>>> probes_;
  std::vector<bool> cancelled_;
  std::vector<bool> is_patient_;
  std::vector<bool> is_granted_;
  std::map<std::size_t, Lease> held_;
  std::vector<Charge> bucket_;
  std::vector<Charge> window_;
  std::vector<Charge> fixed_;
  std::map<std::uint64_t, std::vector<std::size_t>> orders_;
};

}  // namespace

TEST_CASE("random calls of random limits keep every limit, and none is forgotten", "[claims]") {
  Random random("random calls of random limits keep every limit, and none is forgotten");
  CAPTURE(random.repeat());
  for (std::size_t run = 0; run < scaled(60, 10); ++run) {
    Crowd crowd(random);
    for (int i = 0; i < 150; ++i) crowd.act();
    crowd.end();
    crowd.judge();
  }
}

}  // namespace sluice::test
