// What random programs of calls are made of: the limits, processes on wires, and a replay that
// tells the same grants to fresh limits. Threading: everything on the thread that moves the clock.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/waiting/probe.hpp"
#include "tests/waiting/wire.hpp"

namespace sluice::test::claims_model {

using namespace std::chrono_literals;

enum class Kind : std::uint8_t { bucket, shared, window, fixed, counter, slot, job, gate, rate };
constexpr std::uint64_t kinds = 9;
constexpr std::array<Word, kinds> most_units{3, 3, 4, 4, 4, 1, 3, 1, 4};
constexpr Span lease_ttl = 5s;

/// A part of a call.
struct Want {
  Kind kind;
  std::string key;
  Word units;
  [[nodiscard]] bool can_settle() const {
    return kind == Kind::bucket || kind == Kind::window || kind == Kind::fixed;
  }
};

/// The limits, as one process has them.
class Limits {
 public:
  explicit Limits(Store& store, std::int64_t client = 1, bool across = true)
      : all_(TokenBucket(store, "bucket", Quota::per_second(2).burst(3)),
             SharedTokenBucket(store, "shared"),
             SlidingWindow(store, "window", std::vector<WindowLimit>{{4, 5s}}),
             FixedWindow(store, "fixed", 4, Calendar::every(2s)),
             SlidingWindowCounter(store, "counter", WindowLimit{4, 2s}),
             SlotLock(store, "slot", 500ms),
             ConcurrencyLimiter(store, "job", 3, LeaseOptions{.ttl = lease_ttl}),
             Gates(store, "gate", {"account"}, GateOptions{.ramp = 0s, .spacing = 0s}),
             SharedSlidingWindow(store, "rate")) {
    visit_all([&](const auto& limit) {
      limit.set_wait_queue({.across_processes = across, .client = client});
    });
  }

  void configure() const {
    for (const char* key : {"a", "b"}) {
      (void)std::get<SharedTokenBucket>(all_).configure(key, Quota::per_second(2).burst(3));
      set_rate(key, 4);
    }
  }
  void set_rate(const std::string& key, Word limit) const {
    (void)std::get<SharedSlidingWindow>(all_).configure(key, RateType::overall, limit, 3s,
                                                        SpentUnits::kept);
  }
  template <class Visit>
  void visit_all(Visit&& act) const {
    std::apply([&](const auto&... each) { (act(each), ...); }, all_);
  }
  template <class Visit>
  void visit(Kind kind, Visit&& act) const {
    auto at = static_cast<int>(kind);
    visit_all([&](const auto& limit) {
      if (at-- == 0) act(limit);
    });
  }
  [[nodiscard]] Scope scope(const std::string& key) const {
    return std::get<Gates>(all_).scope("account", key);
  }
  void close(const std::string& key, Span span) const {
    std::get<Gates>(all_).close(scope(key), span);
  }
  [[nodiscard]] std::vector<Claim> claims(const std::vector<Want>& wants) const {
    std::vector<Claim> all;
    for (const Want& want : wants) {
      visit(want.kind, [&]<class L>(const L& limit) {
        if constexpr (std::is_same_v<L, Gates>) {
          all.emplace_back(limit, scope(want.key));
        } else {
          all.emplace_back(limit, want.key, want.units);
        }
      });
    }
    return all;
  }
  [[nodiscard]] Decision peek(const Want& want) const {
    Decision decision;
    visit(want.kind, [&]<class L>(const L& limit) {
      if constexpr (std::is_same_v<L, Gates>) {
        decision = limit.peek(scope(want.key));
      } else if constexpr (std::is_same_v<L, SlotLock>) {
        decision = limit.peek(want.key);
      } else {
        decision = limit.peek(want.key, want.units);
      }
    });
    return decision;
  }
  [[nodiscard]] std::size_t waiting() const {
    std::size_t sum = 0;
    visit_all([&](const auto& limit) {
      if constexpr (requires { limit.waiting("a"); }) {
        sum += limit.waiting("a") + limit.waiting("b");
      }
    });
    return sum;
  }
  void cancel_waits() const {
    visit_all([](const auto& limit) { limit.cancel_waits(); });
  }

 private:
  std::tuple<TokenBucket, SharedTokenBucket, SlidingWindow, FixedWindow, SlidingWindowCounter,
             SlotLock, ConcurrencyLimiter, Gates, SharedSlidingWindow>
      all_;
};

/// What a process has between its limits and the wire. When the process has died, nothing that it
/// sends arrives, nor does what is sent to it.
class Port final : public StoreWrapper {
 public:
  explicit Port(Store& wire) : StoreWrapper(wire) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    if (is_dead) return kept_.push_back(std::move(done));
    if (spins(clock().now())) return done.fail(Errc::not_connected);
    const std::string_view verb = plan.steps().front().operation->name;
    constexpr std::array others{"release", "refund", "adjust", "config"};
    if (std::ranges::none_of(others, [&](auto other) { return verb.ends_with(other); })) ++asked;
    StoreWrapper::execute(plan, std::move(done));
  }
  void notify(const Key& key) noexcept override {
    if (!is_dead) StoreWrapper::notify(key);
  }
  void end() {
    while (!kept_.empty()) {
      for (Completion& done : std::exchange(kept_, {})) done.fail(Errc::not_connected);
    }
  }

  bool is_dead = false;
  bool has_spun = false;
  std::uint64_t asked = 0;

 private:
  /// Asks for ever at one instant, which would not end.
  bool spins(Time now) {
    at_once_ = std::exchange(last_, now) == now ? at_once_ + 1 : 1;
    if (at_once_ > 1'000) has_spun = true;
    return has_spun;
  }

  Time last_{};
  int at_once_ = 0;
  std::deque<Completion> kept_;
};

struct Process {
  Process(Store& store, VirtualClock& time, std::uint64_t seed, std::int64_t client, bool across)
      : number(client), wire(store, time, seed), port(wire), limits(port, client, across) {}
  std::int64_t number;
  Wire wire;
  Port port;
  Limits limits;
};

struct Call {
  Process* process;
  std::vector<Want> wants;
  Time came;
  Time deadline;
  detail::Caller caller{};
  bool is_alone = false;  // by the acquire() of its limit
  int ends = 0;
  Time ended{};
  std::optional<Time> cancelled{};
  std::optional<Time> idle_since{};  // all that it wants has been free
  bool is_held = false;
  bool is_settled = false;
  Grants grants{};
  Lease lease{};
  std::function<void()> cancel{};

  [[nodiscard]] bool waits() const { return ends == 0 && !process->port.is_dead; }
  [[nodiscard]] auto limits_and_flow() const {
    std::vector<std::pair<Kind, std::string>> all;
    for (const Want& want : wants) all.emplace_back(want.kind, want.key);
    std::sort(all.begin(), all.end());
    return std::tuple(process, all, caller.priority, caller.flow);
  }
};

/// What the model is told; of one instant, in this order where answers travel.
enum class Act : std::uint8_t { release, refund, settle, grant, close, set_rate };
struct Event {
  Time at;
  Act act;
  std::size_t call;
  std::string key{};
  Word value = 0;
};

inline void release_later(Grants& grants, const std::vector<Want>& wants) {
  for (std::size_t i = 0; i < wants.size(); ++i) {
    if (wants[i].kind == Kind::job) grants.get<Lease>(i).release_later();
  }
}

/// The same grants, told to fresh limits, each at its instant.
class Replay {
 public:
  explicit Replay(const std::deque<Call>& calls)
      : calls_(calls),
        grants_(calls.size() + 1)  // one for events of no call
  {
    limits.configure();
  }
  /// What is wrong, or "".
  std::string tell(const Event& event) {
    end(event.at);
    Grants& own = grants_[event.call];
    switch (event.act) {
      case Act::close:
        limits.close(event.key, Span{event.value});
        return "";
      case Act::set_rate:
        limits.set_rate(event.key, event.value);
        return "";
      case Act::release:
        release_later(own, calls_[event.call].wants);
        return "";
      case Act::refund:
        own.refund();
        return "";
      case Act::settle:
        own.settle(static_cast<std::size_t>(event.value >> 8), event.value & 255);
        return "";
      case Act::grant:
        break;
    }
    std::error_code error;
    own = acquire(limits.claims(calls_[event.call].wants), 0s, {}, error);
    if (own) return "";
    return "call " + std::to_string(event.call) + " was granted what was not there";
  }
  void end(Time at) { clock_.set(std::max(clock_.now(), at)); }
  ~Replay() {
    for (std::size_t i = 0; i < grants_.size(); ++i) {
      if (grants_[i]) release_later(grants_[i], calls_[i].wants);
    }
  }

 private:
  const std::deque<Call>& calls_;
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  std::vector<Grants> grants_;

 public:
  const Limits limits{*store_};
};

}  // namespace sluice::test::claims_model
