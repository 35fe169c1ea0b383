// The table of calls that give something back, for each limiter that can be waited for. Threading:
// none of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/waiting/acquire.hpp"
#include "src/waiting/wait_queues.hpp"
#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"
#ifdef SLUICE_TEST_ASIO
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include "sluice/asio.hpp"
#endif

namespace sluice::test {

/// The forms of a call.
enum class Form { throwing, error_code, asio };
inline std::vector<Form> forms() {
#ifdef SLUICE_TEST_ASIO
  return {Form::throwing, Form::error_code, Form::asio};
#else
  return {Form::throwing, Form::error_code};
#endif
}

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

/// A limit of 5 whose units come back after an hour, or likewise, as its limiters see it: one holds
/// what there is and gives it back, and this or another one waits.
class Limit {
 public:
  Limit() = default;
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  virtual ~Limit() = default;

  virtual const Waitable& limiter() const = 0;
  /// How many callers wait.
  virtual std::size_t waiting() const = 0;
  /// Takes all that there is.
  virtual void fill() = 0;
  /// So much that a caller can be granted.
  virtual void give_back(Form form) = 0;
  /// Waits for ever, blocking or on an io_context.
  virtual Decision acquire(Form form) = 0;
  using Granted = std::function<void(const Decision&)>;
  virtual std::shared_ptr<void> wait(Granted granted) = 0;
};

inline detail::ClaimedLimits claims_of(const Gates& gates) {
  const std::array scopes{gates.scope("account", "1")};
  return Gates::Verbs::claims(gates, scopes);
}
template <class L>
detail::ClaimedLimits claims_of(const L& limiter) {
  return request_of(limiter, "a", 1);
}

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

struct WakeRow {
  std::string limiter;
  std::string call;
  Span later;  ///< so much time passes before the call
  std::function<std::unique_ptr<Limit>(Store&)> make;
};

inline std::vector<WakeRow> wake_rows() {
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
  constexpr auto none = 0;

  const auto bucket = [](Store& store) {
    return TokenBucket(store, "x", Quota::per(5, 1h).burst(5));
  };
  const auto reserve = [](const auto& limiter, Reservation& held) {
    held = limiter.reserve("a", 5, 0s);
  };
  row("refund", 1min, bucket, Reservation{}, reserve,
      [](const TokenBucket& l, Reservation& held, Form form) {
        GIVE_BACK(form, refund, l, "a", held, 3);
      });
  row("cancel", 1min, bucket, Reservation{}, reserve,
      [](const TokenBucket& l, Reservation& held, Form form) {
        GIVE_BACK(form, cancel, l, "a", held);
      });
  row("settle", 1min, bucket, Reservation{}, reserve,
      [](const TokenBucket& l, Reservation& held, Form form) {
        GIVE_BACK(form, settle, l, "a", held, 2);
      });
  row("reward", 1min, bucket, Reservation{}, reserve,
      [](const TokenBucket& l, Reservation&, Form form) { GIVE_BACK(form, reward, l, "a", 1); });
  row("reset", 1min, bucket, Reservation{}, reserve,
      [](const TokenBucket& l, Reservation&, Form form) { GIVE_BACK(form, reset, l, "a"); });

  const auto shared = [](Store& store) { return SharedTokenBucket(store, "x"); };
  const auto reserve_shared = [](const SharedTokenBucket& limiter, Reservation& held) {
    limiter.configure("a", Quota::per(5, 1h).burst(5));
    held = limiter.reserve("a", 5, 0s);
  };
  row("refund", 1min, shared, Reservation{}, reserve_shared,
      [](const SharedTokenBucket& l, Reservation& held, Form form) {
        GIVE_BACK(form, refund, l, "a", held, 3);
      });
  row("cancel", 1min, shared, Reservation{}, reserve_shared,
      [](const SharedTokenBucket& l, Reservation& held, Form form) {
        GIVE_BACK(form, cancel, l, "a", held);
      });
  row("settle", 1min, shared, Reservation{}, reserve_shared,
      [](const SharedTokenBucket& l, Reservation& held, Form form) {
        GIVE_BACK(form, settle, l, "a", held, 2);
      });
  row("reward", 1min, shared, Reservation{}, reserve_shared,
      [](const SharedTokenBucket& l, Reservation&, Form form) {
        GIVE_BACK(form, reward, l, "a", 1);
      });
  row("reset", 1min, shared, Reservation{}, reserve_shared,
      [](const SharedTokenBucket& l, Reservation&, Form form) { GIVE_BACK(form, reset, l, "a"); });
  row("configure", 1min, shared, Reservation{}, reserve_shared,
      [](const SharedTokenBucket& l, Reservation&, Form form) {
        GIVE_BACK(form, configure, l, "a", Quota::per(5, 1h).burst(9), Inheritance::additive);
      });

  const auto window = [](Store& store) { return FixedWindow(store, "x", 5, Calendar::every(1h)); };
  const auto take = [](const auto& limiter, Reservation& held) { held = limiter.reserve("a", 5); };
  const auto refunds = [&](const auto& make, const auto& fill) {
    using L = std::invoke_result_t<decltype(make), Store&>;
    row("refund", 1min, make, Reservation{}, fill,
        [](const L& l, Reservation& held, Form form) { GIVE_BACK(form, refund, l, "a", held, 2); });
    row("cancel", 1min, make, Reservation{}, fill,
        [](const L& l, Reservation& held, Form form) { GIVE_BACK(form, cancel, l, "a", held); });
    row("settle", 1min, make, Reservation{}, fill,
        [](const L& l, Reservation& held, Form form) { GIVE_BACK(form, settle, l, "a", held, 2); });
    row("reward", 1min, make, Reservation{}, fill,
        [](const L& l, Reservation&, Form form) { GIVE_BACK(form, reward, l, "a", 1); });
  };
  refunds(window, take);
  row("reset", 1min, window, Reservation{}, take,
      [](const FixedWindow& l, Reservation&, Form form) { GIVE_BACK(form, reset, l, "a"); });

  const auto windows = [](Store& store) { return SlidingWindow(store, "x", {{5, 1h}}); };
  refunds(windows, take);
  row("reset", 1min, windows, Reservation{}, take,
      [](const SlidingWindow& l, Reservation&, Form form) { GIVE_BACK(form, reset, l, "a"); });

  const auto counter = [](Store& store) { return SlidingWindowCounter(store, "x", {5, 1h}); };
  refunds(counter, take);
  row("reset", 1min, counter, Reservation{}, take,
      [](const SlidingWindowCounter& l, Reservation&, Form form) {
        GIVE_BACK(form, reset, l, "a");
      });

  const auto learned = [](Store& store) {
    const Quota slow = Quota::per(5, 1h);
    return LearnedRate(store, "x", {.initial = slow, .least = slow, .most = slow});
  };
  const auto take_learned = [](const LearnedRate& l, Reservation& held) {
    (void)l.try_acquire("a", 5);
    held = l.reserve("a", 5);
  };
  row("refund", 1min, learned, Reservation{}, take_learned,
      [](const LearnedRate& l, Reservation& held, Form form) {
        GIVE_BACK(form, refund, l, "a", held, 2);
      });
  row("cancel", 1min, learned, Reservation{}, take_learned,
      [](const LearnedRate& l, Reservation& held, Form form) {
        GIVE_BACK(form, cancel, l, "a", held);
      });
  row("settle", 1min, learned, Reservation{}, take_learned,
      [](const LearnedRate& l, Reservation& held, Form form) {
        GIVE_BACK(form, settle, l, "a", held, 2);
      });
  row("reset", 1min, learned, Reservation{}, take_learned,
      [](const LearnedRate& l, Reservation&, Form form) { GIVE_BACK(form, reset, l, "a"); });

  const auto rate = [](Store& store) { return SharedSlidingWindow(store, "x"); };
  const auto take_rate = [](const SharedSlidingWindow& l, Reservation& held) {
    l.configure("a", RateType::overall, 5, 1h);
    held = l.reserve("a", 5);
  };
  refunds(rate, take_rate);
  row("configure", 1min, rate, Reservation{}, take_rate,
      [](const SharedSlidingWindow& l, Reservation&, Form form) {
        GIVE_BACK(form, configure, l, "a", RateType::overall, 7, 1h, SpentUnits::kept);
      });

  const auto lock = [](Store& store) { return SlotLock(store, "x", 1h); };
  const auto take_slot = [](const SlotLock& limiter, SlotPermit& held) {
    held = limiter.try_acquire("a");
  };
  row("cancel", 0s, lock, SlotPermit{}, take_slot,
      [](const SlotLock& l, SlotPermit& held, Form form) {
        GIVE_BACK(form, cancel, l, "a", held);
      });
  row("reset", 1min, lock, SlotPermit{}, take_slot,
      [](const SlotLock& l, SlotPermit&, Form form) { GIVE_BACK(form, reset, l, "a"); });

  const auto jobs = [](Store& store) { return ConcurrencyLimiter(store, "x", 5, {.ttl = 1h}); };
  const auto hold = [](const ConcurrencyLimiter& limiter, std::shared_ptr<Lease>& held) {
    held = std::make_shared<Lease>(limiter.try_acquire("a", 5));
  };
  const std::shared_ptr<Lease> no_lease;
  row("release", 1min, jobs, no_lease, hold,
      [](const ConcurrencyLimiter&, std::shared_ptr<Lease>& held, Form form) {
        GIVE_BACK(form, release, *held);
      });
  row("release", 1min, jobs, no_lease, hold,
      [](const ConcurrencyLimiter& l, std::shared_ptr<Lease>& held, Form form) {
        GIVE_BACK(form, release, l, "a", held->id());
      });
  row("release_later", 1min, jobs, no_lease, hold,
      [](const ConcurrencyLimiter&, std::shared_ptr<Lease>& held, Form) { held->release_later(); });
  row("~Lease", 1min, jobs, no_lease, hold,
      [](const ConcurrencyLimiter&, std::shared_ptr<Lease>& held, Form) { held.reset(); });
  row("reset", 1min, jobs, no_lease, hold,
      [](const ConcurrencyLimiter& l, std::shared_ptr<Lease>&, Form form) {
        GIVE_BACK(form, reset, l, "a");
      });

  const auto gates = [](Store& store) { return Gates(store, "x", {"account"}); };
  row(
      "open", 1min, gates, none,
      [](const Gates& l, int&) { l.close(l.scope("account", "1"), 30min); },
      [](const Gates& l, int&, Form form) {
        const Scope scope = l.scope("account", "1");
        GIVE_BACK(form, open, l, scope);
      });

  // What a call was granted of several limits.
  row(
      "Grants::refund", 1min, bucket, std::optional<Grants>{},
      [](const TokenBucket& l, std::optional<Grants>& held) {
        held = acquire({{l, "a", 5}}, 0s);
      },
      [](const TokenBucket&, std::optional<Grants>& held, Form) { held->refund(); });
  row(
      "Grants::settle", 1min, bucket, std::optional<Grants>{},
      [](const TokenBucket& l, std::optional<Grants>& held) {
        held = acquire({{l, "a", 5}}, 0s);
      },
      [](const TokenBucket&, std::optional<Grants>& held, Form) { held->settle(0, 2); });
  return rows;
}

}  // namespace sluice::test
