// Every asynchronous call answers as its blocking form: one randomized test over all of them, on
// two stores that are equal, and the table of docs/asio.md. Threading: single-threaded.
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sluice/asio.hpp"
#include "sluice/sluice.hpp"
#include "tests/asio/verb_names.hpp"
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

/// Both forms of a call, which tell "CODE: RESULT".
struct Entry {
  using Ask = std::string (*)(Side&, const Draw&);
  Ask blocking;
  Ask asynchronous;
};
/// All calls, by the names of the asynchronous form and the limiter.
using Entries = std::multimap<std::pair<std::string, std::string>, Entry>;

/// `kept` is the member of a Side that becomes the result, or nullptr.
template <class Result, class Kept>
std::string answer(Side& side, const std::error_code& error, Result result, Kept kept) {
  const std::string code = error ? error.category().name() + (": " + error.message()) : "ok";
  const std::string text = code + ": " + told(result);
  if constexpr (!std::is_null_pointer_v<Kept>) side.*kept = std::move(result);
  return text;
}

/// Runs a blocking call, which fills an error_code.
template <class Call, class Kept>
std::string ran(Side& side, Call call, Kept kept) {
  std::error_code error;
  if constexpr (std::is_void_v<decltype(call(error))>) {
    call(error);
    return answer(side, error, sluice::detail::Done{}, kept);
  } else {
    auto result = call(error);
    return answer(side, error, std::move(result), kept);
  }
}

/// Hears the result of an operation. One type for all whose result is not kept.
template <class Kept>
struct Hears {
  template <class... Result>
  void operator()(boost::system::error_code error, Result... result) const {
    CHECK(*text == "never called");
    if constexpr (sizeof...(result) == 0) {
      *text = answer(*side, error, sluice::detail::Done{}, kept);
    } else {
      *text = answer(*side, error, std::move(result)..., kept);
    }
  }

  Side* side;
  std::string* text;
  Kept kept;
};

/// Runs an operation, whose handler runs exactly once.
template <class Start, class Kept>
std::string awaited(Side& side, Start start, Kept kept) {
  std::string text = "never called";
  start(net::bind_executor(side.io, Hears<Kept>{&side, &text, kept}));
  CHECK(text == "never called");
  side.io.restart();
  side.io.run();
  return text;
}

// A row of the table: `of.verb(arguments...)`, whose result is kept. A macro, since no template has
// a name as its argument.
#define SLUICE_VERB_KEEP(kept, verb, limiter, of, ...)                                          \
  entries.emplace(                                                                              \
      std::pair("async_" #verb, limiter),                                                       \
      Entry{[](Side& s, [[maybe_unused]] const Draw& d) {                                       \
              return ran(                                                                       \
                  s, [&](std::error_code& e) { return of.verb(__VA_ARGS__ __VA_OPT__(, ) e); }, \
                  kept);                                                                        \
            },                                                                                  \
            [](Side& s, [[maybe_unused]] const Draw& d) {                                       \
              return awaited(                                                                   \
                  s,                                                                            \
                  [&](auto token) {                                                             \
                    async_##verb(of __VA_OPT__(, ) __VA_ARGS__, std::move(token));              \
                  },                                                                            \
                  kept);                                                                        \
            }})
#define SLUICE_VERB(verb, limiter, of, ...) \
  SLUICE_VERB_KEEP(nullptr, verb, limiter, of __VA_OPT__(, ) __VA_ARGS__)

/// What all limiters over keys have.
template <auto limiter>
void add_keyed(Entries& entries, const char* name) {
  SLUICE_VERB(try_acquire, name, (s.*limiter), d.key, d.cost, d.id);
  SLUICE_VERB(peek, name, (s.*limiter), d.key, d.cost);
  SLUICE_VERB(block, name, (s.*limiter), d.key, d.span);
}

/// What those have that settle. `taken`: what an earlier call was granted.
template <auto limiter, auto taken>
void add_settling(Entries& entries, const char* name) {
  add_keyed<limiter>(entries, name);
  SLUICE_VERB(cancel, name, (s.*limiter), "a", s.*taken);
  SLUICE_VERB(refund, name, (s.*limiter), "a", s.*taken, d.cost);
  SLUICE_VERB(settle, name, (s.*limiter), "a", s.*taken, d.more);
}

template <auto limiter>
void add_changes(Entries& entries, const char* name) {
  SLUICE_VERB(reward, name, (s.*limiter), d.key, d.cost);
  SLUICE_VERB(penalize, name, (s.*limiter), d.key, d.cost);
  SLUICE_VERB(reset, name, (s.*limiter), d.key);
}

void add_buckets(Entries& entries) {
  const char* name = "TokenBucket";
  add_settling<&Side::bucket, &Side::tokens>(entries, name);
  add_changes<&Side::bucket>(entries, name);
  SLUICE_VERB(try_acquire, name, s.bucket, d.key, d.cost);
  SLUICE_VERB_KEEP(&Side::tokens, reserve, name, s.bucket, "a", d.cost, d.span);
  SLUICE_VERB_KEEP(&Side::tokens, borrow, name, s.bucket, "a", d.cost, d.span);
  SLUICE_VERB_KEEP(&Side::tokens, try_acquire_up_to, name, s.bucket, "a", d.cost, d.more);
  name = "BoundTokenBucket";
  SLUICE_VERB(try_acquire, name, s.bound, d.cost);
  SLUICE_VERB(try_acquire, name, s.bound, d.cost, d.id);
  SLUICE_VERB(peek, name, s.bound, d.cost);
}

void add_shared_buckets(Entries& entries) {
  const char* name = "SharedTokenBucket";
  add_settling<&Side::shared, &Side::shared_tokens>(entries, name);
  add_changes<&Side::shared>(entries, name);
  SLUICE_VERB(configure, name, s.shared, d.key, Quota::per_second(2 + d.more.value()),
              Inheritance::proportional);
  SLUICE_VERB(try_configure, name, s.shared, d.key, Quota::per_second(3));
  SLUICE_VERB(configuration, name, s.shared, d.key);
  SLUICE_VERB(try_acquire, name, s.shared, d.key, d.cost);
  SLUICE_VERB_KEEP(&Side::shared_tokens, reserve, name, s.shared, "a", d.cost, d.span);
  SLUICE_VERB_KEEP(&Side::shared_tokens, borrow, name, s.shared, "a", d.cost, d.span);
}

void add_windows(Entries& entries) {
  const char* name = "FixedWindow";
  add_settling<&Side::fixed, &Side::taken_fixed>(entries, name);
  add_changes<&Side::fixed>(entries, name);
  SLUICE_VERB_KEEP(&Side::taken_fixed, reserve, name, s.fixed, "a", d.cost);
  SLUICE_VERB(try_acquire, name, s.daily, d.key, d.cost, d.id);
  SLUICE_VERB(peek, name, s.daily, d.key, d.cost);
  SLUICE_VERB(synchronize, name, s.daily, d.key);
  name = "SlidingWindowCounter";
  add_settling<&Side::counter, &Side::taken_counter>(entries, name);
  add_changes<&Side::counter>(entries, name);
  SLUICE_VERB_KEEP(&Side::taken_counter, reserve, name, s.counter, "a", d.cost);
  name = "SlidingWindow";
  add_settling<&Side::sliding, &Side::window>(entries, name);
  SLUICE_VERB(try_acquire, name, s.sliding, d.key, d.cost);
  SLUICE_VERB_KEEP(&Side::window, reserve, name, s.sliding, "a", d.cost, d.span);
  SLUICE_VERB(reward, name, s.sliding, d.key, d.cost);
  SLUICE_VERB(reset, name, s.sliding, d.key);
  SLUICE_VERB(remaining, name, s.sliding, d.key);
}

void add_learned_rates(Entries& entries) {
  const char* name = "LearnedRate";
  add_settling<&Side::learned, &Side::taken_learned>(entries, name);
  SLUICE_VERB_KEEP(&Side::taken_learned, reserve, name, s.learned, "a", d.cost);
  SLUICE_VERB(limited, name, s.learned, "a", s.taken_learned);
  SLUICE_VERB(told, name, s.learned, d.key,
              (ToldLimit{.limit = 4, .span = 1s, .remaining = 2, .reset = d.span}));
  SLUICE_VERB(learned, name, s.learned, d.key);
  SLUICE_VERB(reset, name, s.learned, d.key);
}

void add_shared_windows(Entries& entries) {
  const char* name = "SharedSlidingWindow";
  add_settling<&Side::rate, &Side::permits>(entries, name);
  SLUICE_VERB(configure, name, s.rate, "a", RateType::overall, d.more.value(), 2s,
              SpentUnits::kept);
  SLUICE_VERB(configure, name, s.rate, d.key, RateType::per_client, 4, 1s, SpentUnits::forgotten);
  SLUICE_VERB(try_configure, name, s.rate, d.key, RateType::overall, 3, 1s);
  SLUICE_VERB(configuration, name, s.rate, d.key);
  SLUICE_VERB(refresh, name, s.rate, d.key);
  SLUICE_VERB(try_acquire, name, s.rate, d.key, d.cost);
  SLUICE_VERB_KEEP(&Side::permits, reserve, name, s.rate, "a", d.cost, d.span);
  SLUICE_VERB(reward, name, s.rate, d.key, d.cost);
}

void add_leases(Entries& entries) {
  const char* name = "ConcurrencyLimiter";
  SLUICE_VERB_KEEP(&Side::lease, try_acquire, name, s.jobs, "a", d.cost);
  SLUICE_VERB_KEEP(&Side::lease, try_acquire, name, s.jobs, "a", d.cost, (LeaseId{7, d.id.low}));
  SLUICE_VERB(peek, name, s.jobs, d.key, d.cost);
  SLUICE_VERB(block, name, s.jobs, d.key, d.span);
  SLUICE_VERB(reset, name, s.jobs, d.key);
  entries.emplace(std::pair("async_release", name),
                  Entry{[](Side& s, const Draw& d) {
                          return ran(
                              s,
                              [&](std::error_code& e) {
                                const bool released = s.jobs.release("a", {7, d.id.low}, e);
                                if (e == Errc::lease_not_live) e.clear();  // as if it throws
                                return released;
                              },
                              nullptr);
                        },
                        [](Side& s, const Draw& d) {
                          return awaited(
                              s,
                              [&](auto token) {
                                async_release(s.jobs, "a", LeaseId{7, d.id.low}, std::move(token));
                              },
                              nullptr);
                        }});
  SLUICE_VERB(renew, "Lease", s.lease);
  SLUICE_VERB(release, "Lease", s.lease);
  name = "FleetShedder";
  SLUICE_VERB_KEEP(&Side::place, try_acquire, name, s.fleet, "low", d.cost);
  SLUICE_VERB_KEEP(&Side::place, try_acquire, name, s.fleet, "high", d.cost,
                   (LeaseId{8, d.id.low}));
  SLUICE_VERB(try_acquire, name, s.fleet, "no such tier", d.cost);
  SLUICE_VERB(peek, name, s.fleet, "low", d.cost);
  SLUICE_VERB(block, name, s.fleet, d.span);
  SLUICE_VERB(reset, name, s.fleet);
}

void add_others(Entries& entries) {
  const char* name = "SlotLock";
  SLUICE_VERB_KEEP(&Side::slot, try_acquire, name, s.lock, "a");
  SLUICE_VERB_KEEP(&Side::slot, reserve, name, s.lock, "a", d.span);
  SLUICE_VERB(peek, name, s.lock, d.key, d.span);
  SLUICE_VERB(cancel, name, s.lock, "a", s.slot);
  SLUICE_VERB(block, name, s.lock, d.key, d.span);
  SLUICE_VERB(reset, name, s.lock, d.key);
  name = "UtilizationShedder";
  SLUICE_VERB(sample, name, s.load, d.share);
  SLUICE_VERB(sample, name, s.load, d.key, d.share);
  SLUICE_VERB(try_acquire, name, s.load, "sheddable");
  SLUICE_VERB(try_acquire, name, s.load, s.load.tier("critical"));
  SLUICE_VERB(try_acquire, name, s.load, d.key, s.load.tier("sheddable"));
  SLUICE_VERB(try_acquire, name, s.load, d.key, "no such tier");
  SLUICE_VERB(peek, name, s.load, "sheddable");
  SLUICE_VERB(peek, name, s.load, s.load.tier("critical"));
  SLUICE_VERB(peek, name, s.load, d.key, s.load.tier("sheddable"));
  SLUICE_VERB(peek, name, s.load, d.key, "sheddable");
  SLUICE_VERB(report, name, s.load);
  SLUICE_VERB(report, name, s.load, d.key);
  SLUICE_VERB(reset, name, s.load);
  SLUICE_VERB(reset, name, s.load, d.key);
  name = "Gates";
  SLUICE_VERB(pass, name, s.gates, s.scopes);
  SLUICE_VERB(pass, name, s.gates, s.scopes[0]);
  SLUICE_VERB(peek, name, s.gates, s.scopes);
  SLUICE_VERB(peek, name, s.gates, s.scopes[1]);
  SLUICE_VERB(close, name, s.gates, s.scopes[d.key == "a" ? 0 : 1], d.span);
  SLUICE_VERB(open, name, s.gates, s.scopes[0]);
}

Entries all_entries() {
  Entries entries;
  for (const auto add : {add_buckets, add_shared_buckets, add_windows, add_learned_rates,
                         add_shared_windows, add_leases, add_others}) {
    add(entries);
  }
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
