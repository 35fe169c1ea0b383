// The texts of a scenario's values, good and bad. Threading: single-threaded.
#include "sim/scenario/text.hpp"

#include <array>
#include <string>

#include "sim/scenario/parameters.hpp"
#include "sim/tests/help.hpp"
#include "sluice/sim/figures.hpp"

using namespace sluice;
using namespace sluice::sim;
using namespace sluice::sim::scenario;
using namespace std::chrono_literals;
using test::message_of;

namespace {

struct Bad {
  std::string_view text;
  std::string_view message;
};

/// Checks that none of the texts is what is expected.
template <class Parse>
void check_expected(std::string_view what, std::initializer_list<std::string_view> texts,
                    Parse parse) {
  for (const std::string_view text : texts) {
    const std::string given = text.empty() ? "nothing" : "\"" + std::string(text) + "\"";
    CHECK(message_of([&] { return parse(text); }) ==
          "expected " + std::string(what) + ", got " + given);
  }
}

}  // namespace

TEST_CASE("times") {
  struct Good {
    std::string_view text;
    Span span;
  };
  const Good good[] = {{"0", 0s},
                       {"0s", 0s},
                       {"250us", 250us},
                       {"20ms", 20ms},
                       {"1.5s", 1500ms},
                       {"2min", 2min},
                       {"2m", 2min},
                       {"1h", 1h},
                       {"1d", 24h},
                       {"0.5us", 1us},
                       {"1.4us", 1us},
                       {"7 s", 7s},
                       {"1.0000005s", 1000001us},
                       {"0.001s", 1ms},
                       {".5s", 500ms},
                       {"4503599627370496us", Span{word_limit}}};
  for (const auto& [text, span] : good) {
    CAPTURE(text);
    CHECK(parse_span(text) == span);
    CHECK(parse_step(text) == span);
    if (span != 0s) CHECK(parse_step("-" + std::string(text)) == -span);
  }
  check_expected(
      "a time, as 250us, 20ms, 1.5s, 2min, 1h or 1d",
      {"", "5", "s", "ms", "-1s", "--1s", "1x", "1 fortnight", "1e3ms", "1.s", ".s", "nans", "infs",
       "1e300d", "4503599627370497us", "0x10s", "1,5s", "5s 3ms", "1s\n"},
      &parse_span);
  check_expected("a step, as 500ms or -2s", {"--1s"}, &parse_step);
}

TEST_CASE("rates") {
  struct Good {
    std::string_view text;
    Word events;
    Span per;
  };
  const Good good[] = {{"100/s", 100, 1s},    {"25/5s", 25, 5s},
                       {"0.5/min", 5, 10min}, {"7 / ms", 7, 1ms},
                       {"1.25/h", 125, 100h}, {"0/s", 0, 1s},
                       {"1000/d", 1000, 24h}, {"0.000001/s", 1, 1'000'000s}};
  for (const auto& [text, events, per] : good) {
    CAPTURE(text);
    const Rate rate = parse_rate(text);
    CHECK(rate.events == events);
    CHECK(rate.per == per);
  }
  check_expected("a rate, as 100/s, 0.5/min or 25/5s",
                 {"", "100", "/s", "100/", "-1/s", "1/0s", "1/-1s", "x/s", "1.5.5/s", "0.0000001/s",
                  "1/fortnight", "2000000000000/s", "1e3/s", "0.000001/4503599627370496us"},
                 &parse_rate);
}

TEST_CASE("numbers, counts and flags") {
  CHECK(parse_number("0.25", 0, 1) == 0.25);
  CHECK(parse_number("25%", 0, 1) == 0.25);
  CHECK(parse_number("25 %", 0, 1) == 0.25);
  check_expected("a number from 0 to 1",
                 {"", "%", "1.5", "-0.1", "nan", "inf", "1 2", "101%", "one"},
                 [](std::string_view text) { return parse_number(text, 0, 1); });
  CHECK(parse_count("17", 1, 20) == 17);
  check_expected("a whole number from 1 to 20",
                 {"", "0", "21", "1.0", "+5", "99999999999999999999", "5 "},
                 [](std::string_view text) { return parse_count(text, 1, 20); });
  CHECK(parse_flag("true"));
  CHECK_FALSE(parse_flag("false"));
  check_expected("true or false", {"yes"}, &parse_flag);
}

TEST_CASE("delays") {
  struct Good {
    std::string_view text;
    Delay delay;
  };
  const std::vector<Delay::Point> points = {{0, 5ms}, {0.5, 10ms}, {1, 30ms}};
  const std::vector<Delay::Part> parts = {{9, Delay::constant(1ms)}, {1, Delay::exponential(5ms)}};
  const Good good[] = {{"5ms", Delay::constant(5ms)},
                       {"constant(5ms)", Delay::constant(5ms)},
                       {"uniform(1ms, 3ms)", Delay::uniform(1ms, 3ms)},
                       {"exponential(2s)", Delay::exponential(2s)},
                       {"log_normal(250us, 800us)", Delay::log_normal(250us, 800us)},
                       {"normal(10ms, 1ms)", Delay::normal(10ms, 1ms)},
                       {"gamma(10ms, 2)", Delay::gamma(10ms, 2)},
                       {"pareto(1ms, 1.5)", Delay::pareto(1ms, 1.5)},
                       {"weibull(1ms, 0.7)", Delay::weibull(1ms, 0.7)},
                       {"empirical(0 5ms, 0.5 10ms, 1 30ms)", Delay::empirical(points)},
                       {"mixture(9 1ms, 1 exponential(5ms))", Delay::mixture(parts)},
                       {"phases(5ms, 1min, exponential(1s), 2s)",
                        Delay::phases(Delay::constant(5ms), 1min, Delay::exponential(1s), 2s)},
                       {"runs(uniform(1ms, 3ms), 9.5, 1s, 2)",
                        Delay::runs(Delay::uniform(1ms, 3ms), 9.5, Delay::constant(1s), 2)}};
  for (const auto& [text, delay] : good) {
    CAPTURE(text);
    const Delay parsed = parse_delay(text);
    SeededRng a(7);
    SeededRng b(7);
    for (int i = 0; i < 100; ++i) REQUIRE(parsed.sample(a) == delay.sample(b));
  }
  const Bad bad[] = {
      {"-5ms", "expected a time, as 250us, 20ms, 1.5s, 2min, 1h or 1d, got \"-5ms\""},
      {"uniform(1ms)", "expected uniform(low, high), got \"uniform(1ms)\""},
      {"uniform(1ms, 2ms", "expected uniform(low, high), got \"uniform(1ms, 2ms\""},
      {"uniform(", "expected uniform(low, high), got \"uniform(\""},
      {"uniform(1ms, x)", "expected a time, as 250us, 20ms, 1.5s, 2min, 1h or 1d, got \"x\""},
      {"lognormal(1ms, 2ms)",
       "expected one of constant, uniform, exponential, log_normal, normal, gamma, pareto, "
       "weibull, phases, runs, empirical, mixture, got \"lognormal\"; did you mean log_normal?"},
      {"empirical(10ms)", "expected a share and a time, as 0.5 10ms, got \"10ms\""},
      {"mixture(10ms)", "expected a weight and a delay, as 9 10ms, got \"10ms\""},
      {"gamma(10ms, -1)", "expected a number from 0 to 1000, got \"-1\""},
      {"phases(1ms, 1s, 2ms)",
       "expected phases(fast, mean time, slow, mean time), got \"phases(1ms, 1s, 2ms)\""},
      {"runs(1ms, 0.5, 2ms, 3)", "expected a number from 1 to 1048576, got \"0.5\""},
      {"runs(phases(1ms, 1s, 2ms, 1s), 1, 2ms, 3)",
       "the delay of a state cannot be one of phases() or runs(), whose states would be lost"},
  };
  for (const auto& [text, message] : bad) {
    CAPTURE(text);
    CHECK(message_of([&text = text] { return parse_delay(text); }) == message);
  }
  for (const std::string_view text :
       {"uniform(3ms, 1ms)", "log_normal(3ms, 1ms)", "gamma(1ms, 0)",
        "empirical(0.5 10ms, 0.2 1ms)", "mixture(0 1ms)", "pareto(1ms, 0)"}) {
    CAPTURE(text);
    CHECK(message_of([&] { return parse_delay(text); }) != "");
  }
}

TEST_CASE("limits of the API") {
  const ApiLimit sliding = parse_window_limit("10000/min");
  CHECK(sliding.limit == 10'000);
  CHECK(sliding.window == 1min);
  CHECK_FALSE(sliding.aligned);
  const ApiLimit aligned = parse_window_limit("25/5s aligned");
  CHECK(aligned.limit == 25);
  CHECK(aligned.window == 5s);
  CHECK(aligned.aligned);
  check_expected("a limit, as 10000/min or 10000/min aligned", {"", "100", "100/s askew"},
                 &parse_window_limit);
  for (const std::string count : {"0", "0.5"}) {
    CHECK(message_of([&] { return parse_window_limit(count + "/s"); }) ==
          "expected a whole number from 1 to 100000000, got \"" + count + "\"");
  }
}

TEST_CASE("what a 429 says") {
  CHECK(parse_retry_after("exact").tell(1500ms) == 1500ms);
  CHECK_FALSE(parse_retry_after("missing").tell(1500ms));
  CHECK(parse_retry_after("seconds").tell(1500ms) == 2s);
  CHECK(parse_retry_after("0.5 times").tell(1500ms) == 750ms);
  CHECK(parse_retry_after("3 times").tell(1500ms) == 4500ms);
  CHECK(parse_retry_after("1 times").tell(1500ms) == 1500ms);
  CHECK(message_of([] { return parse_retry_after("wrong"); }) ==
        "expected exact, missing, seconds, or a factor such as 0.5 times, got \"wrong\"");
  CHECK(message_of([] { return parse_retry_after("-1 times"); }) ==
        "expected a number from 0 to 1000, got \"-1\"");
}

TEST_CASE("bursts") {
  const auto burst = parse_burst("1000 at 59s");
  CHECK(burst.jobs == 1000);
  CHECK(burst.at == 59s);
  CHECK(message_of([] { return parse_burst("1000"); }) ==
        "expected a number of jobs and a time, as 1000 at 59s, got \"1000\"");
  CHECK(message_of([] { return parse_burst("0 at 59s"); }) ==
        "expected a whole number from 1 to 10000000, got \"0\"");
}

TEST_CASE("the nearest name") {
  constexpr std::array<std::string_view, 3> names{"rate", "load", "workers"};
  CHECK(nearest("lode", names) == "load");
  CHECK(nearest("worker", names) == "workers");
  CHECK(nearest("rate", names) == "rate");
  CHECK(nearest("xyz", names).empty());
  CHECK(nearest("", names).empty());
  CHECK(nearest("rate", {}).empty());
  // Two letters the wrong way round are one change, of which three letters have room for one.
  const std::string_view commands[] = {"list", "run", "log"};
  CHECK(nearest("rnu", commands) == "run");
  CHECK(nearest("lsit", commands) == "list");
  CHECK(nearest("foo", commands).empty());
  CHECK(nearest("foo", commands, 2) == "log");
  CHECK(nearest("foo", commands, 1).empty());
  CHECK(nearest("xyzzy", commands, 99) == "list");
}

TEST_CASE("every parameter's standard text is its default") {
  const auto may_be_absent = [](const Parameter& parameter) {
    return parameter.standard.empty() && !parameter.is_list;
  };
  for (const Parameter& parameter : parameters()) {
    CAPTURE(parameter.path);
    if (may_be_absent(parameter)) continue;
    const Texts texts =
        parameter.standard.empty() ? Texts{} : Texts{std::string(parameter.standard)};
    Scenario changed;
    REQUIRE_NOTHROW(set(changed, parameter.path, texts));
    CHECK_FALSE(parameter.help.empty());
  }
  // What compares; delays are compared by their draws.
  Scenario all;
  for (const Parameter& parameter : parameters()) {
    if (may_be_absent(parameter)) continue;
    set(all, parameter.path,
        parameter.standard.empty() ? Texts{} : Texts{std::string(parameter.standard)});
  }
  for (const Parameter& parameter : parameters()) {
    CAPTURE(parameter.path);
    CHECK_FALSE(parameter.differs(all, {}));
  }
  set(all, "upstream.limits", {"10/s", "20/min"});
  set(all, "upstream.limits", {"30/h"});  // and no other any more
  CHECK(all.upstream.limits.size() == 1);
}

TEST_CASE("parameters that do not exist, and values that are none") {  // more: study/file_test.cpp
  Scenario s;
  const auto told = [&s](std::string_view path, const Texts& texts) {
    return message_of([&] { return set(s, path, texts), 0; });
  };
  CHECK(told("quite_something_else", {"1"}) == "quite_something_else: there is no such parameter");
  CHECK(told("arrivals.rate", {"1/s", "2/s"}) == "arrivals.rate: expected one value, got 2");
  CHECK(told("limiter.kind", {"token_buckt"}) ==
        "limiter.kind: expected one of none, token_bucket, sliding_window, fixed_window, "
        "sliding_window_counter, slot_lock, learned_rate, concurrency, utilization_shedder, ideal, "
        "got \"token_buckt\"; did you mean token_bucket?");
  CHECK(message_of([] { return metric("share_428"); }).find("share_429") != std::string::npos);
}

TEST_CASE("scenarios that contradict themselves") {
  struct Contradiction {
    std::vector<std::pair<std::string_view, std::string>> settings;
    std::string_view message;
  };
  const std::pair<std::string_view, std::string> shedder{"limiter.kind", "utilization_shedder"};
  const Contradiction table[] = {
      {{{"run.duration", "0s"}}, "run.duration must be more than 0 and at most 31 days"},
      {{{"run.warm_up", "2min"}}, "run.warm_up must be less than run.duration"},
      {{{"arrivals.kind", "bursts"}}, "arrivals.bursts is empty"},
      {{{"arrivals.kind", "trace"}}, "there is no trace"},
      {{{"arrivals.kind", "closed"}, {"arrivals.load", "2"}},
       "arrivals.load does nothing here: it needs an arrivals.kind other than"},
      {{{"arrivals.kind", "bursts"}, {"arrivals.bursts", "6000000 at 1s"}, {"arrivals.load", "2"}},
       "a burst of 6000000 jobs at arrivals.load = 2.000000 has more than 10000000 jobs"},
      {{{"arrivals.kind", "mmpp"}, {"arrivals.busy_for", "0s"}},
       "arrivals.busy_for must be 1ms to 365d, got 0.000000 s"},
      {{{"arrivals.kind", "mmpp"}, {"arrivals.calm_for", "1ms"}, {"run.duration", "1h"}},
       "arrivals.calm_for of 0.001000 s makes more than 1000000 phases in run.duration"},
      {{{"limiter.limit", "0/s"}}, "limiter.limit must be 1 or more"},
      {{{"limiter.gates", "true"}, {"limiter.scope", "per_process"}}, "limiter.gates need"},
      {{{"limiter.gates", "true"}, {"limiter.wait", "skip"}}, "limiter.gates need"},
      {{{"limiter.kind", "ideal"}}, "needs upstream.limits"},
      {{{"limiter.shadow", "slot_lock"}}, "limiter.shadow must be a bucket or a window"},
      {{{"jobs.cost", "101"}}, "a job takes up to 101 units, and the limiter grants at most 100"},
      {{{"jobs.cost", "11"}, {"limiter.burst", "10"}},
       "a job takes up to 11 units, and the limiter grants at most 10"},
      {{{"jobs.cost", "11"}, {"limiter.scope", "per_process"}},
       "a job takes up to 11 units, and the limiter grants at most 10"},
      {{{"upstream.lost", "0.1"}}, "upstream.lost needs client.timeout"},
      {{{"upstream.answer_lost", "0.1"}}, "upstream.answer_lost needs client.timeout"},
      {{{"limiter.kind", "learned_rate"}, {"limiter.limit", "10001/s"}}, "0.0001/s to 10000/s"},
      {{{"limiter.kind", "learned_rate"},
        {"limiter.limit", "9/d"},
        {"limiter.scope", "per_process"}},
       "0.0001/s to 10000/s"},
      {{{"client.pause", "0s"}}, "client.pause must be 1us to 1d"},
      {{{"client.throttle", "0.5"}},
       "client.throttle must be 1 to 1000, or 0 for none, got 0.500000"},
      {{{"client.throttle_window", "0s"}}, "client.throttle_window must be 1us to 1h, got 0.0"},
      {{{"client.throttle_window", "61min"}}, "client.throttle_window must be 1us to 1h, got 3660"},
      {{{"store.timeout", "0s"}}, "store.timeout must be more than 0"},
      {{shedder, {"limiter.wait", "queue"}}, "needs limiter.wait = \"skip\""},
      {{shedder, {"upstream.servers", "0"}}, "needs upstream.servers"},
      {{shedder, {"limiter.hold", "1s"}}, "limiter.hold prefetches units"},
      {{shedder, {"limiter.good", "0.9"}}, "0 < good <= bad < 1, got 0.900000 and 0.800000"},
      {{shedder, {"limiter.bad", "1"}}, "0 < good <= bad < 1"},
      {{shedder, {"limiter.grace", "1h"}}, "at most 1 h together"},
      {{shedder, {"limiter.full_after", "0s"}}, "at most 1 h together"},
      {{shedder, {"limiter.rest_after", "1s"}}, "limiter.rest_after must be"},
      {{shedder, {"limiter.period", "0s"}}, "limiter.period must be"},
  };
  for (const auto& [settings, message] : table) {
    CAPTURE(message);
    Scenario s;
    if (settings.front() == shedder) {
      set(s, "limiter.wait", {"skip"});
      set(s, "upstream.servers", {"100"});
    }
    for (const auto& [path, text] : settings) set(s, path, {text});
    CHECK_THROWS_WITH(validate(s), test::contains_text(std::string(message)));
  }
  CHECK_NOTHROW(validate(Scenario{}));
  Scenario s;
  s.limiter.kind = LimiterOptions::Kind::learned_rate;
  s.limiter.limit = {10'000, 1s};
  CHECK_NOTHROW(validate(s));
  s.upstream.lost = 0.1;
  s.client.timeout = 1s;
  CHECK_NOTHROW(validate(s));
}

TEST_CASE("faults that cannot be") {
  using Kind = FaultPlan::Kind;
  const std::pair<FaultPlan, std::string> table[] = {
      {{.kind = Kind::store_down, .at = 1min, .length = 1s},
       "the fault store_down at 60.000000 s must begin within run.duration"},
      {{.kind = Kind::network_loss, .length = 1s, .factor = 2}, "its factor must be 0 to 1"},
      {{.kind = Kind::upstream_second, .length = 1s}, "needs a limit"},
      {{.kind = Kind::upstream_limit, .length = 1s}, "needs upstream.limits"},
      {{.kind = Kind::upstream_servers, .length = 1s}, "needs upstream.servers"},
      {{.kind = Kind::worker_pause}, "needs a length"},
      {{.kind = Kind::upstream_cut, .length = 1s}, "needs client.timeout"},
      {{.kind = Kind::upstream_loss, .length = 1s}, "needs client.timeout"},
      {{.kind = Kind::upstream_answers_lost, .length = 1s}, "needs client.timeout"}};
  Scenario s;
  for (const auto& [fault, message] : table) {
    s.faults = {fault};
    CHECK_THROWS_WITH(validate(s), test::contains_text(message));
  }
  for (const Kind kind : {Kind::store_down, Kind::upstream_doubled}) {
    s.faults = {{.kind = kind, .at = 1s, .length = 1s}};
    CHECK_NOTHROW(validate(s));
  }
}
