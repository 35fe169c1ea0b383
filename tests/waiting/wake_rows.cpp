// The table of calls that give something back, and that it is complete. Threading: single-threaded.
#include "tests/waiting/wake_rows.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/waiting/acquire.hpp"
#include "src/waiting/wait_queues.hpp"
#include "tests/catch.hpp"
#include "tests/support/limiters.hpp"
#ifdef SLUICE_TEST_ASIO
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include "sluice/asio.hpp"
#endif

namespace sluice::test {

namespace {

#ifdef SLUICE_TEST_ASIO
template <class Start>
void run_async(Start start) {
  boost::asio::io_context io;
  bool answered = false;
  start(boost::asio::bind_executor(io, [&](boost::system::error_code error, const auto&...) {
    answered = true;
    if (error) throw std::system_error(std::error_code(error));
  }));
  io.run();
  REQUIRE(answered);
}
#define SLUICE_ASYNC_FORM(call, of, ...) \
  run_async([&](auto token) { asio::async_##call(of __VA_OPT__(, ) __VA_ARGS__, token); })
#else
#define SLUICE_ASYNC_FORM(call, of, ...) FAIL("no asio")
#endif

/// `of.call(arguments...)` in a form. It throws if it fails.
#define GIVE_BACK(form, call, of, ...)                                 \
  do {                                                                 \
    std::error_code failed;                                            \
    if (form == Form::throwing) {                                      \
      static_cast<void>((of).call(__VA_ARGS__));                       \
    } else if (form == Form::error_code) {                             \
      static_cast<void>((of).call(__VA_ARGS__ __VA_OPT__(, ) failed)); \
    } else {                                                           \
      SLUICE_ASYNC_FORM(call, of __VA_OPT__(, ) __VA_ARGS__);          \
    }                                                                  \
    if (failed) throw std::system_error(failed);                       \
  } while (false)

template <class L, class Held>
class LimitOf final : public Limit {
 public:
  struct Calls {
    std::function<void(const L&, Held&)> fill;
    std::function<void(const L&, Held&, Form)> give_back;
  };

  template <class Make>
  LimitOf(Store& store, const Make& make, Calls calls)
      : limiter_(make(store)), calls_(std::move(calls)) {}
  ~LimitOf() override { limiter_.cancel_waits(); }

  const Waitable& limiter() const override { return limiter_; }
  std::size_t waiting() const override {
    const auto claims = claims_of(limiter_);
    const detail::ClaimedLimit& claim = *claims.front();
    return claim.queues()->waiting(detail::queue_key(claim.key()));
  }
  void fill() override { calls_.fill(limiter_, held_); }
  void give_back(Form form) override { calls_.give_back(limiter_, held_, form); }
  Decision acquire(Form form) override {
    if (form == Form::asio) return acquire_on_loop();
    auto limits = claims_of(limiter_);
    auto limit = std::move(limits.front());
    std::error_code error;
    if (form == Form::throwing) {
      limit = detail::block({L::type_name, "acquire"}, std::move(limit), Deadline::never(), {});
    } else {
      limit = detail::block(std::move(limit), Deadline::never(), {}, error);
      if (error) throw std::system_error(error);
    }
    const Decision decision = limit->decision();
    keep(std::move(limit));
    return decision;
  }
  std::shared_ptr<void> wait(Granted granted) override {
    auto probe =
        wait_for(limiter_, claims_of(limiter_), Deadline::never(),
                 [this, granted](std::error_code error, typename L::Grant grant) {
                   if (error) return;
                   const Decision decision = detail::decision_of(grant);
                   grants_.push_back(std::make_unique<typename L::Grant>(std::move(grant)));
                   granted(decision);
                 });
    probes_.push_back(probe);
    return probe;
  }

 private:
  Decision acquire_on_loop() {
    Decision decision;
#ifdef SLUICE_TEST_ASIO
    boost::asio::io_context io;
    asio::detail::async_wait_for<typename L::Grant>(
        claims_of(limiter_), {}, Deadline::never(), {},
        boost::asio::bind_executor(io, [&](boost::system::error_code error, auto grant) {
          if (error) throw std::system_error(std::error_code(error));
          decision = detail::decision_of(grant);
          grants_.push_back(std::make_unique<typename L::Grant>(std::move(grant)));
        }));
    io.run();
#endif
    return decision;
  }
  void keep(std::unique_ptr<detail::ClaimedLimit> limit) { limits_.push_back(std::move(limit)); }

  L limiter_;
  Calls calls_;
  Held held_{};
  std::vector<std::unique_ptr<detail::ClaimedLimit>> limits_;
  std::vector<std::unique_ptr<typename L::Grant>> grants_;
  std::vector<std::shared_ptr<void>> probes_;
};

// Whether a class has a member of this name: then a derived class has two.
#define SLUICE_HAS_MEMBER(name)            \
  struct Other_##name {                    \
    int name;                              \
  };                                       \
  template <class L>                       \
  struct Both_##name : L, Other_##name {}; \
  template <class L>                       \
  constexpr bool has_##name = !requires {  \
    &Both_##name<L>::name;                 \
  }
SLUICE_HAS_MEMBER(refund);
SLUICE_HAS_MEMBER(cancel);
SLUICE_HAS_MEMBER(settle);
SLUICE_HAS_MEMBER(reward);
SLUICE_HAS_MEMBER(reset);
SLUICE_HAS_MEMBER(configure);
SLUICE_HAS_MEMBER(open);
SLUICE_HAS_MEMBER(release);
#undef SLUICE_HAS_MEMBER

/// The calls of a limiter that give back.
template <class L>
std::vector<std::string> calls_of() {
  std::vector<std::string> calls;
  const auto add = [&](bool has, const char* call) {
    if (has) calls.emplace_back(call);
  };
  add(has_refund<L>, "refund");
  add(has_cancel<L>, "cancel");
  add(has_settle<L>, "settle");
  add(has_reward<L>, "reward");
  add(has_reset<L>, "reset");
  add(has_configure<L>, "configure");
  add(has_open<L>, "open");
  add(has_release<L>, "release");
  return calls;
}

}  // namespace

std::vector<Form> forms() {
#ifdef SLUICE_TEST_ASIO
  return {Form::throwing, Form::error_code, Form::asio};
#else
  return {Form::throwing, Form::error_code};
#endif
}

std::vector<WakeRow> wake_rows() {
  using namespace std::chrono_literals;
  std::vector<WakeRow> rows;
  const auto row = [&]<class Make, class Held>(const char* call, Span later, const Make& make, Held,
                                               auto fill, auto give_back) {
    using L = std::invoke_result_t<Make, Store&>;
    rows.push_back({L::type_name, call, later, [=](Store& store) -> std::unique_ptr<Limit> {
                      return std::make_unique<LimitOf<L, Held>>(
                          store, make, typename LimitOf<L, Held>::Calls{fill, give_back});
                    }});
  };

  // The calls of the limits that grant Reservations.
  const auto refund = [](const auto& limiter, Reservation& held, Form form) {
    GIVE_BACK(form, refund, limiter, "a", held, 2);
  };
  const auto cancel = [](const auto& limiter, auto& held, Form form) {
    GIVE_BACK(form, cancel, limiter, "a", held);
  };
  const auto settle = [](const auto& limiter, Reservation& held, Form form) {
    GIVE_BACK(form, settle, limiter, "a", held, 2);
  };
  const auto reward = [](const auto& limiter, Reservation&, Form form) {
    GIVE_BACK(form, reward, limiter, "a", 1);
  };
  const auto reset = [](const auto& limiter, auto&, Form form) {
    GIVE_BACK(form, reset, limiter, "a");
  };
  const auto reservations = [&](const auto& make, const auto& fill) {
    row("refund", 1min, make, Reservation{}, fill, refund);
    row("cancel", 1min, make, Reservation{}, fill, cancel);
    row("settle", 1min, make, Reservation{}, fill, settle);
  };
  const auto take = [](const auto& limiter, Reservation& held) { held = limiter.reserve("a", 5); };

  const auto bucket = [](Store& store) {
    return TokenBucket(store, "x", Quota::per(5, 1h).burst(5));
  };
  const auto window = [](Store& store) { return FixedWindow(store, "x", 5, Calendar::every(1h)); };
  const auto windows = [](Store& store) { return SlidingWindow(store, "x", {{5, 1h}}); };
  const auto counter = [](Store& store) { return SlidingWindowCounter(store, "x", {5, 1h}); };
  const auto plain = [&](const auto& make) {
    reservations(make, take);
    row("reward", 1min, make, Reservation{}, take, reward);
    row("reset", 1min, make, Reservation{}, take, reset);
  };
  plain(bucket);
  plain(window);
  plain(windows);
  plain(counter);

  const auto shared = [](Store& store) { return SharedTokenBucket(store, "x"); };
  const auto take_shared = [](const SharedTokenBucket& limiter, Reservation& held) {
    limiter.configure("a", Quota::per(5, 1h).burst(5));
    held = limiter.reserve("a", 5, 0s);
  };
  reservations(shared, take_shared);
  row("reward", 1min, shared, Reservation{}, take_shared, reward);
  row("reset", 1min, shared, Reservation{}, take_shared, reset);
  row("configure", 1min, shared, Reservation{}, take_shared,
      [](const SharedTokenBucket& limiter, Reservation&, Form form) {
        GIVE_BACK(form, configure, limiter, "a", Quota::per(5, 1h).burst(9), Inheritance::additive);
      });

  const auto learned = [](Store& store) {
    const Quota slow = Quota::per(5, 1h);
    return LearnedRate(store, "x", {.initial = slow, .least = slow, .most = slow});
  };
  const auto take_learned = [](const LearnedRate& limiter, Reservation& held) {
    (void)limiter.try_acquire("a", 5);
    held = limiter.reserve("a", 5);
  };
  reservations(learned, take_learned);
  row("reset", 1min, learned, Reservation{}, take_learned, reset);

  const auto rate = [](Store& store) { return SharedSlidingWindow(store, "x"); };
  const auto take_rate = [](const SharedSlidingWindow& limiter, Reservation& held) {
    limiter.configure("a", RateType::overall, 5, 1h);
    held = limiter.reserve("a", 5);
  };
  reservations(rate, take_rate);
  row("reward", 1min, rate, Reservation{}, take_rate, reward);
  row("configure", 1min, rate, Reservation{}, take_rate,
      [](const SharedSlidingWindow& limiter, Reservation&, Form form) {
        GIVE_BACK(form, configure, limiter, "a", RateType::overall, 7, 1h, SpentUnits::kept);
      });

  const auto lock = [](Store& store) { return SlotLock(store, "x", 1h); };
  const auto take_slot = [](const SlotLock& limiter, SlotPermit& held) {
    held = limiter.try_acquire("a");
  };
  row("cancel", 0s, lock, SlotPermit{}, take_slot, cancel);
  row("reset", 1min, lock, SlotPermit{}, take_slot, reset);

  using Held = std::shared_ptr<Lease>;
  const auto jobs = [](Store& store) { return ConcurrencyLimiter(store, "x", 5, {.ttl = 1h}); };
  const auto hold = [](const ConcurrencyLimiter& limiter, Held& held) {
    held = std::make_shared<Lease>(limiter.try_acquire("a", 5));
  };
  row("release", 1min, jobs, Held{}, hold,
      [](const auto&, Held& held, Form form) { GIVE_BACK(form, release, *held); });
  row("release", 1min, jobs, Held{}, hold, [](const auto& limiter, Held& held, Form form) {
    GIVE_BACK(form, release, limiter, "a", held->id());
  });
  row("release_later", 1min, jobs, Held{}, hold,
      [](const auto&, Held& held, Form) { held->release_later(); });
  row("~Lease", 1min, jobs, Held{}, hold, [](const auto&, Held& held, Form) { held.reset(); });
  row("reset", 1min, jobs, Held{}, hold, reset);

  const auto gates = [](Store& store) { return Gates(store, "x", {"account"}); };
  row(
      "open", 1min, gates, 0, [](const Gates& l, int&) { l.close(l.scope("account", "1"), 30min); },
      [](const Gates& l, int&, Form form) {
        const Scope scope = l.scope("account", "1");
        GIVE_BACK(form, open, l, scope);
      });

  // What a call was granted of several limits.
  using Claimed = std::optional<Grants>;
  const auto take_claim = [](const TokenBucket& limiter, Claimed& held) {
    held = acquire({{limiter, "a", 5}}, 0s);
  };
  row("Grants::refund", 1min, bucket, Claimed{}, take_claim,
      [](const auto&, Claimed& held, Form) { held->refund(); });
  row("Grants::settle", 1min, bucket, Claimed{}, take_claim,
      [](const auto&, Claimed& held, Form) { held->settle(0, 2); });
  return rows;
}

TEST_CASE("every limiter that can be waited for has a row for each call that gives back",
          "[waiting][wake]") {
  const auto rows = wake_rows();
  std::size_t limiters = 0;
  for_each_limiter([&](const std::string&, auto make, auto) {
    using L = std::invoke_result_t<decltype(make), Store&>;
    if constexpr (!std::is_base_of_v<Waitable, L>) {
      STATIC_REQUIRE((std::is_same_v<L, FleetShedder> || std::is_same_v<L, UtilizationShedder>));
    } else {
      ++limiters;
      for (const std::string& call : calls_of<L>()) {
        CAPTURE(L::type_name, call);
        CHECK(std::any_of(rows.begin(), rows.end(), [&](const WakeRow& row) {
          return row.limiter == L::type_name && row.call == call;
        }));
      }
    }
  });
  CHECK(limiters == 10);
}

}  // namespace sluice::test
