// Every asynchronous call answers as its blocking form: one randomized test over all of them, on
// two stores that are equal, and the table of docs/asio.md. Threading: single-threaded.
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sluice/asio.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
namespace net = boost::asio;
using namespace sluice::asio;

namespace {

/// One of two equal worlds: all limiters on one store.
struct Side {
  explicit Side(std::uint64_t seed) : rng(seed) {}

  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  net::io_context io;
  SeededRng rng;

  TokenBucket bucket{*store, "bucket", Quota::per_second(2).burst(5)};
  BoundTokenBucket bound = bucket.at("a");
  SharedTokenBucket shared{*store, "shared"};
  FixedWindow fixed{*store, "fixed", 5, Calendar::every(2s)};
  FixedWindow daily{*store, "daily", 5, Calendar::daily()};
  SlidingWindow sliding{*store, "sliding", {{3, 1s}, {6, 5s}}};
  SlidingWindowCounter counter{*store, "counter", {5, 2s}};
  LearnedRate learned{*store, "learned", {.initial = Quota::per_second(3)}};
  SharedSlidingWindow rate{*store, "rate", {.client = "one"}};
  SlotLock lock{*store, "lock", 500ms};
  ConcurrencyLimiter jobs{*store, "jobs", 4, {.ttl = 3s, .rng = &rng}};
  FleetShedder fleet{*store,
                     "fleet",
                     6,
                     {{"high", FleetShare::percent(100)}, {"low", FleetShare::percent(50)}},
                     {.ttl = 3s, .rng = &rng}};
  UtilizationShedder load{*store, "load", {.grace = 1s, .full_after = 2s, .rest_after = 10s}, rng};
  Gates gates{*store, "gates", {"host"}, {.ramp = 1s}};
  std::array<Scope, 2> scopes{gates.scope("host", "a"), gates.scope("host", "b")};

  // What earlier calls were granted.
  Reservation tokens;
  Reservation shared_tokens;
  Reservation taken_fixed;
  Reservation taken_counter;
  Reservation taken_learned;
  Reservation window;
  Reservation permits;
  SlotPermit slot;
  Lease lease;
  Lease place;
};

/// The arguments of a call.
struct Draw {
  std::string key;
  Cost cost = 1;
  Cost more = 1;
  Span span{0};
  RequestId id;
  double share = 0;
};

std::string told(const Decision& d) {
  return to_string(d) + " limit " + std::to_string(d.limit) + " at " +
         std::to_string(to_word(d.at));
}
std::string told(Word word) { return std::to_string(word); }
std::string told(bool yes) { return yes ? "yes" : "no"; }
std::string told(sluice::detail::Done) { return "done"; }
std::string told(const Reservation& r) {
  std::string text = told(static_cast<const Decision&>(r)) + " granted " +
                     std::to_string(r.granted) + " settled " + std::to_string(r.settled);
  for (const Word word : r.state) text += ' ' + std::to_string(word);
  return text;
}
std::string told(const std::vector<Word>& words) {
  std::string text;
  for (const Word word : words) text += std::to_string(word) + ' ';
  return text;
}
std::string told(const Settlement& s) {
  return std::to_string(s.refunded) + " back, " + std::to_string(s.charged) + " charged";
}
std::string told(const LearnedSpeed& s) {
  return std::to_string(s.rate) + ", " + std::to_string(s.peak) + " at the peak";
}
std::string told(const SlotPermit& p) {
  return told(static_cast<const Decision&>(p)) + " from " + std::to_string(to_word(p.not_before)) +
         " to " + std::to_string(to_word(p.not_after));
}
std::string told(const Lease& lease) {
  std::string text = told(lease.decision());
  if (!lease) return text + " no lease";
  return text + " id " + std::to_string(lease.id().high) + " fence " +
         std::to_string(lease.fence()) + " until " + std::to_string(to_word(lease.expires_at())) +
         (lease.lost() ? " lost" : "");
}
template <class Change>
requires requires(const Change& c) { c.changed; }
std::string told(const Change& c) { return told(c.changed) + " version " + told(c.version); }
std::string told(const std::optional<RateConfiguration>& s) {
  if (!s) return "none";
  return told(s->rate) + " in " + told(s->interval.count()) + " type " +
         told(static_cast<Word>(s->type)) + " version " + told(s->version);
}
std::string told(const std::optional<SharedTokenBucket::Configuration>& s) {
  if (!s) return "none";
  return told(s->quota.capacity()) + " at " + told(s->quota.refill()) + " version " +
         told(s->version) + ": " + told(s->decision);
}
std::string told(const UtilizationReport& r) {
  std::ostringstream text;
  text << r.amount << " rests after " << r.rests_after.count();
  for (const double each : r.probabilities) text << ' ' << each;
  if (r.last_sample) text << " sampled " << to_word(*r.last_sample);
  return text.str();
}

using Ask = std::function<std::string(Side&, const Draw&)>;

/// "CODE: RESULT" of both forms.
struct Entry {
  Ask blocking;
  Ask asynchronous;
};

std::string answer(const std::error_code& error, const std::string& result) {
  return (error ? error.category().name() + (": " + error.message()) : "ok") + ": " + result;
}

struct Forget {
  template <class R>
  void operator()(Side&, R&&) const noexcept {}
};

/// Runs a blocking call with an error_code.
template <class Call, class Keep>
std::string ran(Side& side, const Draw& draw, const Call& call, const Keep& keep) {
  std::error_code error;
  using R = decltype(call(side, draw, error));
  if constexpr (std::is_void_v<R>) {
    call(side, draw, error);
    return answer(error, told(sluice::detail::Done{}));
  } else {
    auto result = call(side, draw, error);
    std::string text = answer(error, told(result));
    keep(side, std::move(result));
    return text;
  }
}

/// Hears the result of an operation. One type for all operations whose result is not kept: it is
/// compiled once for each result.
template <class Keep>
struct Hears {
  template <class... R>
  void operator()(boost::system::error_code error, R... result) const {
    CHECK(*text == "never called");
    if constexpr (sizeof...(result) == 0) {
      *text = answer(error, told(sluice::detail::Done{}));
    } else {
      *text = answer(error, told(result...));
      keep(*side, std::move(result)...);
    }
  }

  Side* side;
  std::string* text;
  Keep keep;
};

/// Runs an operation; the handler runs exactly once.
template <class Operation, class Keep>
std::string awaited(Side& side, Operation operation, const Keep& keep) {
  std::string text = "never called";
  std::move(operation)(net::bind_executor(side.io, Hears<Keep>{&side, &text, keep}));
  CHECK(text == "never called");
  side.io.restart();
  side.io.run();
  return text;
}

/// All calls, by the names of the asynchronous form and the limiter.
using Entries = std::multimap<std::pair<std::string, std::string>, Entry>;

template <class Blocking, class Asynchronous, class Keep = Forget>
void add(Entries& entries, const std::string& verb, const std::string& limiter, Blocking blocking,
         Asynchronous asynchronous, Keep keep = {}) {
  entries.emplace(
      std::pair("async_" + verb, limiter),
      Entry{[=](Side& s, const Draw& d) { return ran(s, d, blocking, keep); },
            [=](Side& s, const Draw& d) { return awaited(s, asynchronous(s, d), keep); }});
}

#define SLUICE_VERB(verb, limiter, member, ...)                         \
  add(                                                                  \
      entries, #verb, #limiter,                                         \
      [](Side& s, [[maybe_unused]] const Draw& d, std::error_code& e) { \
        return s.member.verb(__VA_ARGS__ __VA_OPT__(, ) e);             \
      },                                                                \
      []([[maybe_unused]] Side& s, [[maybe_unused]] const Draw& d) {    \
        return async_##verb(s.member __VA_OPT__(, ) __VA_ARGS__);       \
      })
#define SLUICE_VERB_KEEP(kept, verb, limiter, member, ...)              \
  add(                                                                  \
      entries, #verb, #limiter,                                         \
      [](Side& s, [[maybe_unused]] const Draw& d, std::error_code& e) { \
        return s.member.verb(__VA_ARGS__ __VA_OPT__(, ) e);             \
      },                                                                \
      []([[maybe_unused]] Side& s, [[maybe_unused]] const Draw& d) {    \
        return async_##verb(s.member __VA_OPT__(, ) __VA_ARGS__);       \
      },                                                                \
      [](Side& s, auto&& result) { s.kept = std::forward<decltype(result)>(result); })

void add_buckets(Entries& entries) {
  SLUICE_VERB(try_acquire, TokenBucket, bucket, d.key, d.cost);
  SLUICE_VERB(try_acquire, TokenBucket, bucket, d.key, d.cost, d.id);
  SLUICE_VERB(peek, TokenBucket, bucket, d.key, d.cost);
  SLUICE_VERB_KEEP(tokens, reserve, TokenBucket, bucket, "a", d.cost, d.span);
  SLUICE_VERB_KEEP(tokens, borrow, TokenBucket, bucket, "a", d.cost, d.span);
  SLUICE_VERB_KEEP(tokens, try_acquire_up_to, TokenBucket, bucket, "a", d.cost, d.more);
  SLUICE_VERB(cancel, TokenBucket, bucket, "a", s.tokens);
  SLUICE_VERB(refund, TokenBucket, bucket, "a", s.tokens, d.cost);
  SLUICE_VERB(settle, TokenBucket, bucket, "a", s.tokens, d.cost);
  SLUICE_VERB(block, TokenBucket, bucket, d.key, d.span);
  SLUICE_VERB(reward, TokenBucket, bucket, d.key, d.cost);
  SLUICE_VERB(penalize, TokenBucket, bucket, d.key, d.cost);
  SLUICE_VERB(reset, TokenBucket, bucket, d.key);
  SLUICE_VERB(try_acquire, BoundTokenBucket, bound, d.cost);
  SLUICE_VERB(try_acquire, BoundTokenBucket, bound, d.cost, d.id);
  SLUICE_VERB(peek, BoundTokenBucket, bound, d.cost);
}

void add_shared_buckets(Entries& entries) {
  SLUICE_VERB(configure, SharedTokenBucket, shared, d.key, Quota::per_second(2 + d.more.value()),
              Inheritance::proportional);
  SLUICE_VERB(try_configure, SharedTokenBucket, shared, d.key, Quota::per_second(3));
  SLUICE_VERB(configuration, SharedTokenBucket, shared, d.key);
  SLUICE_VERB(try_acquire, SharedTokenBucket, shared, d.key, d.cost);
  SLUICE_VERB(try_acquire, SharedTokenBucket, shared, d.key, d.cost, d.id);
  SLUICE_VERB(peek, SharedTokenBucket, shared, d.key, d.cost);
  SLUICE_VERB_KEEP(shared_tokens, reserve, SharedTokenBucket, shared, "a", d.cost, d.span);
  SLUICE_VERB_KEEP(shared_tokens, borrow, SharedTokenBucket, shared, "a", d.cost, d.span);
  SLUICE_VERB(cancel, SharedTokenBucket, shared, "a", s.shared_tokens);
  SLUICE_VERB(refund, SharedTokenBucket, shared, "a", s.shared_tokens, d.cost);
  SLUICE_VERB(settle, SharedTokenBucket, shared, "a", s.shared_tokens, d.cost);
  SLUICE_VERB(block, SharedTokenBucket, shared, d.key, d.span);
  SLUICE_VERB(reward, SharedTokenBucket, shared, d.key, d.cost);
  SLUICE_VERB(penalize, SharedTokenBucket, shared, d.key, d.cost);
  SLUICE_VERB(reset, SharedTokenBucket, shared, d.key);
}

void add_windows(Entries& entries) {
  SLUICE_VERB_KEEP(taken_fixed, reserve, FixedWindow, fixed, "a", d.cost);
  SLUICE_VERB(cancel, FixedWindow, fixed, "a", s.taken_fixed);
  SLUICE_VERB(try_acquire, FixedWindow, daily, d.key, d.cost, d.id);
  SLUICE_VERB(peek, FixedWindow, daily, d.key, d.cost);
  SLUICE_VERB(refund, FixedWindow, fixed, "a", s.taken_fixed, d.cost);
  SLUICE_VERB(settle, FixedWindow, fixed, "a", s.taken_fixed, d.more);
  SLUICE_VERB(reward, FixedWindow, fixed, d.key, d.cost);
  SLUICE_VERB(penalize, FixedWindow, fixed, d.key, d.cost);
  SLUICE_VERB(block, FixedWindow, fixed, d.key, d.span);
  SLUICE_VERB(reset, FixedWindow, fixed, d.key);
  SLUICE_VERB(synchronize, FixedWindow, daily, d.key);
  SLUICE_VERB(try_acquire, SlidingWindow, sliding, d.key, d.cost);
  SLUICE_VERB(try_acquire, SlidingWindow, sliding, d.key, d.cost, d.id);
  SLUICE_VERB(peek, SlidingWindow, sliding, d.key, d.cost);
  SLUICE_VERB_KEEP(window, reserve, SlidingWindow, sliding, "a", d.cost, d.span);
  SLUICE_VERB(cancel, SlidingWindow, sliding, "a", s.window);
  SLUICE_VERB(refund, SlidingWindow, sliding, "a", s.window, d.cost);
  SLUICE_VERB(settle, SlidingWindow, sliding, "a", s.window, d.more);
  SLUICE_VERB(block, SlidingWindow, sliding, d.key, d.span);
  SLUICE_VERB(reward, SlidingWindow, sliding, d.key, d.cost);
  SLUICE_VERB(reset, SlidingWindow, sliding, d.key);
  SLUICE_VERB(remaining, SlidingWindow, sliding, d.key);
  SLUICE_VERB_KEEP(taken_counter, reserve, SlidingWindowCounter, counter, "a", d.cost);
  SLUICE_VERB(cancel, SlidingWindowCounter, counter, "a", s.taken_counter);
  SLUICE_VERB(try_acquire, SlidingWindowCounter, counter, d.key, d.cost, d.id);
  SLUICE_VERB(peek, SlidingWindowCounter, counter, d.key, d.cost);
  SLUICE_VERB(refund, SlidingWindowCounter, counter, "a", s.taken_counter, d.cost);
  SLUICE_VERB(settle, SlidingWindowCounter, counter, "a", s.taken_counter, d.more);
  SLUICE_VERB(block, SlidingWindowCounter, counter, d.key, d.span);
  SLUICE_VERB(reward, SlidingWindowCounter, counter, d.key, d.cost);
  SLUICE_VERB(penalize, SlidingWindowCounter, counter, d.key, d.cost);
  SLUICE_VERB(reset, SlidingWindowCounter, counter, d.key);
}

void add_learned_rates(Entries& entries) {
  SLUICE_VERB_KEEP(taken_learned, reserve, LearnedRate, learned, "a", d.cost);
  SLUICE_VERB(limited, LearnedRate, learned, "a", s.taken_learned);
  SLUICE_VERB(told, LearnedRate, learned, d.key,
              ToldLimit{.limit = 4, .span = 1s, .remaining = 2, .reset = d.span});
  SLUICE_VERB(learned, LearnedRate, learned, d.key);
  SLUICE_VERB(try_acquire, LearnedRate, learned, d.key, d.cost, d.id);
  SLUICE_VERB(peek, LearnedRate, learned, d.key, d.cost);
  SLUICE_VERB(cancel, LearnedRate, learned, "a", s.taken_learned);
  SLUICE_VERB(refund, LearnedRate, learned, "a", s.taken_learned, d.cost);
  SLUICE_VERB(settle, LearnedRate, learned, "a", s.taken_learned, d.more);
  SLUICE_VERB(block, LearnedRate, learned, d.key, d.span);
  SLUICE_VERB(reset, LearnedRate, learned, d.key);
}

void add_shared_windows(Entries& entries) {
  SLUICE_VERB(configure, SharedSlidingWindow, rate, "a", RateType::overall, d.more.value(), 2s,
              SpentUnits::kept);
  SLUICE_VERB(configure, SharedSlidingWindow, rate, d.key, RateType::per_client, 4, 1s,
              SpentUnits::forgotten);
  SLUICE_VERB(try_configure, SharedSlidingWindow, rate, d.key, RateType::overall, 3, 1s);
  SLUICE_VERB(configuration, SharedSlidingWindow, rate, d.key);
  SLUICE_VERB(refresh, SharedSlidingWindow, rate, d.key);
  SLUICE_VERB(try_acquire, SharedSlidingWindow, rate, d.key, d.cost);
  SLUICE_VERB(try_acquire, SharedSlidingWindow, rate, d.key, d.cost, d.id);
  SLUICE_VERB(peek, SharedSlidingWindow, rate, d.key, d.cost);
  SLUICE_VERB_KEEP(permits, reserve, SharedSlidingWindow, rate, "a", d.cost, d.span);
  SLUICE_VERB(cancel, SharedSlidingWindow, rate, "a", s.permits);
  SLUICE_VERB(refund, SharedSlidingWindow, rate, "a", s.permits, d.cost);
  SLUICE_VERB(settle, SharedSlidingWindow, rate, "a", s.permits, d.cost);
  SLUICE_VERB(block, SharedSlidingWindow, rate, d.key, d.span);
  SLUICE_VERB(reward, SharedSlidingWindow, rate, d.key, d.cost);
}

void add_leases(Entries& entries) {
  SLUICE_VERB_KEEP(lease, try_acquire, ConcurrencyLimiter, jobs, "a", d.cost);
  SLUICE_VERB_KEEP(lease, try_acquire, ConcurrencyLimiter, jobs, "a", d.cost,
                   (LeaseId{7, d.id.low}));
  SLUICE_VERB(peek, ConcurrencyLimiter, jobs, d.key, d.cost);
  add(
      entries, "release", "ConcurrencyLimiter",
      [](Side& s, const Draw& d, std::error_code& e) {
        const bool released = s.jobs.release("a", LeaseId{7, d.id.low}, e);
        if (e == Errc::lease_not_live) e.clear();  // as the form that throws
        return released;
      },
      [](Side& s, const Draw& d) {
        return async_release(s.jobs, "a", LeaseId{7, d.id.low});
      });
  SLUICE_VERB(block, ConcurrencyLimiter, jobs, d.key, d.span);
  SLUICE_VERB(reset, ConcurrencyLimiter, jobs, d.key);
  SLUICE_VERB(renew, Lease, lease);
  SLUICE_VERB(release, Lease, lease);
  SLUICE_VERB_KEEP(place, try_acquire, FleetShedder, fleet, "low", d.cost);
  SLUICE_VERB_KEEP(place, try_acquire, FleetShedder, fleet, "high", d.cost, (LeaseId{8, d.id.low}));
  SLUICE_VERB(try_acquire, FleetShedder, fleet, "no such tier", d.cost);
  SLUICE_VERB(peek, FleetShedder, fleet, "low", d.cost);
  SLUICE_VERB(block, FleetShedder, fleet, d.span);
  SLUICE_VERB(reset, FleetShedder, fleet);
}

void add_others(Entries& entries) {
  SLUICE_VERB_KEEP(slot, try_acquire, SlotLock, lock, "a");
  SLUICE_VERB_KEEP(slot, reserve, SlotLock, lock, "a", d.span);
  SLUICE_VERB(peek, SlotLock, lock, d.key, d.span);
  SLUICE_VERB(cancel, SlotLock, lock, "a", s.slot);
  SLUICE_VERB(block, SlotLock, lock, d.key, d.span);
  SLUICE_VERB(reset, SlotLock, lock, d.key);
  SLUICE_VERB(sample, UtilizationShedder, load, d.share);
  SLUICE_VERB(sample, UtilizationShedder, load, d.key, d.share);
  SLUICE_VERB(try_acquire, UtilizationShedder, load, "sheddable");
  SLUICE_VERB(try_acquire, UtilizationShedder, load, s.load.tier("critical"));
  SLUICE_VERB(try_acquire, UtilizationShedder, load, d.key, s.load.tier("sheddable"));
  SLUICE_VERB(try_acquire, UtilizationShedder, load, d.key, "no such tier");
  SLUICE_VERB(peek, UtilizationShedder, load, "sheddable");
  SLUICE_VERB(peek, UtilizationShedder, load, s.load.tier("critical"));
  SLUICE_VERB(peek, UtilizationShedder, load, d.key, s.load.tier("sheddable"));
  SLUICE_VERB(peek, UtilizationShedder, load, d.key, "sheddable");
  SLUICE_VERB(report, UtilizationShedder, load);
  SLUICE_VERB(report, UtilizationShedder, load, d.key);
  SLUICE_VERB(reset, UtilizationShedder, load);
  SLUICE_VERB(reset, UtilizationShedder, load, d.key);
  SLUICE_VERB(pass, Gates, gates, s.scopes);
  SLUICE_VERB(pass, Gates, gates, s.scopes[0]);
  SLUICE_VERB(peek, Gates, gates, s.scopes);
  SLUICE_VERB(peek, Gates, gates, s.scopes[1]);
  SLUICE_VERB(close, Gates, gates, s.scopes[d.key == "a" ? 0 : 1], d.span);
  SLUICE_VERB(open, Gates, gates, s.scopes[0]);
}

Entries all_entries() {
  Entries entries;
  add_buckets(entries);
  add_shared_buckets(entries);
  add_windows(entries);
  add_learned_rates(entries);
  add_shared_windows(entries);
  add_leases(entries);
  add_others(entries);
  return entries;
}

Draw drawn(Random& random) {
  constexpr std::array spans{-1ms, 0ms, 1ms, 300ms, 2000ms, 61'000ms};
  Draw draw;
  draw.key = random.one_in(20) ? "" : random.one_in(2) ? "a" : "b";
  draw.cost = random.between(random.one_in(10) ? -1 : 0, random.one_in(5) ? 7 : 3);
  draw.more = random.between(random.one_in(10) ? -1 : 1, 4);
  draw.span = spans[random.below(spans.size())];
  draw.id = {1, random.below(3) + random.below(2) * random.below(1000)};
  draw.share = 0.25 * static_cast<double>(random.below(6));
  return draw;
}

/// What the calls have updated.
std::string state_of(const Side& side) {
  return told(side.tokens) + '\n' + told(side.shared_tokens) + '\n' + told(side.permits) + '\n' +
         told(side.lease) + '\n' + told(side.place);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

using Names = std::set<std::pair<std::string, std::string>>;

/// What `all` has and `some` has not, as text.
std::set<std::string> without(const Names& all, const Names& some) {
  std::set<std::string> texts;
  for (const auto& name : all) {
    if (!some.contains(name)) texts.insert(name.first + " of " + name.second);
  }
  return texts;
}

/// The public part of a class whose definition begins at `begin`.
std::string public_part(const std::string& text, std::size_t begin) {
  const auto end = std::min({text.find("\n private:", begin), text.find("\n protected:", begin),
                             text.find("\n};", begin)});
  return text.substr(begin, end - begin);
}
/// The names of the functions that have a form which fills an error_code.
std::set<std::string> calls_of(const std::string& text) {
  const std::string last = "std::error_code& error)";
  std::set<std::string> names;
  for (auto at = text.find(last); at != std::string::npos; at = text.find(last, at + 1)) {
    std::size_t opening = at;
    for (int depth = 1; depth > 0; depth += text[opening] == ')'   ? 1
                                            : text[opening] == '(' ? -1
                                                                   : 0)
      --opening;
    const auto begin = text.find_last_of(" \n", opening) + 1;
    names.insert(text.substr(begin, opening - begin));
  }
  return names;
}
/// The calls of every class in include/sluice/limiters that ask the store, but for those that have
/// no asynchronous form or another one, async_acquire().
Names names_in_headers() {
  const auto folder = std::filesystem::path(SLUICE_SOURCE) / "include/sluice/limiters";
  const std::string keyed = "KeyedLimiter";
  const std::set<std::string> left_out{"acquire", "acquire_steps", "peek_steps", "block_steps",
                                       "reward_steps"};
  std::map<std::string, std::set<std::string>> calls;
  std::set<std::string> are_keyed;
  const std::regex definition(R"(\nclass (\[\[nodiscard\]\] )?(\w+)( [^;{]*)?\{)");
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    const std::string text = text_of(file.path());
    for (std::sregex_iterator each(text.begin(), text.end(), definition), end; each != end;
         ++each) {
      const auto begin = static_cast<std::size_t>(each->position() + each->length());
      calls[(*each)[2]] = calls_of(public_part(text, begin));
      if ((*each)[3].str().find(keyed) != std::string::npos) are_keyed.insert((*each)[2]);
    }
  }
  for (const std::string& limiter : are_keyed)
    calls[limiter].insert(calls[keyed].begin(), calls[keyed].end());
  calls.erase(keyed);
  Names names;
  for (const auto& [limiter, each] : calls)
    for (const std::string& call : each)
      if (!left_out.contains(call)) names.emplace("async_" + call, limiter);
  return names;
}

/// The rows of the table: | `Limiter` | `call(...)` | `step` | result |
Names names_in_table() {
  std::istringstream text(text_of(std::filesystem::path(SLUICE_SOURCE) / "docs/asio.md"));
  Names names;
  const std::regex row(R"(\| `(\w+)` \| `(\w+)\(.*)");
  std::smatch found;
  for (std::string line; std::getline(text, line);) {
    if (std::regex_match(line, found, row)) names.emplace("async_" + found[2].str(), found[1]);
  }
  return names;
}

}  // namespace

TEST_CASE("every asynchronous call answers as its blocking form", "[asio]") {
  Random random("every asynchronous call answers as its blocking form");
  CAPTURE(random.repeat());
  const Entries entries = all_entries();
  for (std::size_t round = 0; round < scaled(20); ++round) {
    const std::uint64_t seed = random.next();
    Side left(seed);
    Side right(seed);
    std::size_t calls = 0;
    for (std::size_t i = 0; i < 600; ++i) {
      // Each once, then any.
      const auto index = i < entries.size() ? i : random.below(entries.size());
      const auto& [names, entry] = *std::next(entries.begin(), static_cast<std::ptrdiff_t>(index));
      const Draw draw = drawn(random);
      INFO(names.first << " of " << names.second << " of " << draw.cost.value() << ", "
                       << draw.more.value() << ", " << draw.span.count() << " us, key "
                       << draw.key);
      REQUIRE(entry.asynchronous(right, draw) == entry.blocking(left, draw));
      REQUIRE(state_of(right) == state_of(left));
      const Span step = random.one_in(2) ? Span{0} : Span{random.between(1, 800'000)};
      left.clock.advance(step);
      right.clock.advance(step);
      ++calls;
    }
    REQUIRE(calls > entries.size());
  }
}

TEST_CASE("the headers of asynchronous calls and waits include no limiter", "[asio]") {
  const auto folder = std::filesystem::path(SLUICE_SOURCE) / "include/sluice/asio";
  for (const char* header :
       {"verbs.hpp", "acquire.hpp", "detail/async_verb.hpp", "detail/kept.hpp"}) {
    INFO(header);
    CHECK(text_of(folder / header).find("#include \"sluice/limiters/") == std::string::npos);
  }
}

TEST_CASE("every call of a limiter has an asynchronous form, a test and a row in the table",
          "[asio]") {
  Names tested;
  for (const auto& [names, entry] : all_entries()) tested.insert(names);
  const Names declared = names_in_headers();
  CHECK(declared.size() > 80);
  const auto compare = [&](const char* file, const Names& found) {
    INFO(file << " has each call of the headers, and no other");
    CHECK(without(declared, found) == std::set<std::string>());
    CHECK(without(found, declared) == std::set<std::string>());
  };
  compare("tests/asio/verbs_test.cpp", tested);
  compare("docs/asio.md", names_in_table());
}

}  // namespace sluice::test
