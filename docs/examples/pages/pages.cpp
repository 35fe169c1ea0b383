// What the pages show beside their whole programs, compiled as it stands there; nothing of it runs.
// For each page a test asks that every block of its code is found here or is its program.
#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iostream>

#include "sluice/adapters/beast.hpp"
#include "sluice/asio.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/calls/with_backoff.hpp"
#include "sluice/config/limit_file.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/http.hpp"
#if __has_include(<httplib.h>)
#include "sluice/adapters/httplib.hpp"
#endif
#include "sluice/redis/redis_store.hpp"
#include "sluice/sim/resource.hpp"
#include "sluice/sim/world.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/conformance.hpp"
#include "sluice/timezone/time_zone.hpp"

// clang-format off
namespace pages {

using namespace sluice;
using namespace std::chrono_literals;

namespace calls_page {
struct Rows {
  bool send_next();
};
struct TimedOut : std::runtime_error {
  using runtime_error::runtime_error;
};
struct NotConnected : std::runtime_error {
  using runtime_error::runtime_error;
};
struct Response {
  int status;
  std::string body;
};
struct Client {
  Response get(std::string_view url);
};
void failures(const Call& call, Client& client, std::string_view url) {
const std::string page = call([&] {
  try {
    const auto response = client.get(url);
    if (response.status == 503) throw Transient();          // perhaps served: the charge stays
    return response.body;
  } catch (const TimedOut&) {
    std::throw_with_nested(Transient());                    // the last failure still has its cause
  } catch (const NotConnected&) {
    std::throw_with_nested(Transient(Served::no));          // certainly not served: refunded
  }
});
}
std::string send(std::string_view prompt, int account);
void alternatives(const TokenBucket& requests, const TokenBucket& tokens, const Gates& gates, const Scope& a, const Scope& b, std::string_view prompt, const std::vector<int>& accounts) {
const Call ask(first_of({
    {{requests, "account-a"}, {tokens, "account-a", Estimate{800}}, {gates, a}},
    {{requests, "account-b"}, {tokens, "account-b", Estimate{800}}, {gates, b}},
}));
ask([&](Grants& granted) { return send(prompt, accounts[granted.alternative()]); });
}
void end(const ConcurrencyLimiter& jobs, const TokenBucket& requests, Rows& rows) {
const Call export_all({{jobs, "alice"}, {requests, "alice"}}, {.deadline = 10s, .end_by = 60s});
export_all([&](const StopToken& stop) {
  while (!stop.stop_requested() && rows.send_next()) {
  }
});
}
}  // namespace calls_page

namespace composing_page {
struct Tariff {
  std::string quota;
  Word calls_a_day;
};
void data(Store& store, const Tariff& plan) {
const TokenBucket bucket(store, "api", Quota::parse(plan.quota));  // "10/s:50", "never" or "unlimited"
const FixedWindow daily(store, "daily", plan.calls_a_day, Calendar::daily());  // 0, 10'000, sluice::unlimited
}
void plan(Store* store, const TokenBucket& user, const SlidingWindow& account, const Gates& gates, const Scope& scope) {
const std::array steps{user.acquire_step("alice"), account.acquire_step("acme"), gates.pass_step(scope)};
const Decision d = decide(*store, steps);
static_cast<void>(d);
}
Decision shared(Store* store, const TokenBucket& user, const SharedSlidingWindow& rates, std::error_code& error) {
for (;;) {
  const auto rate = rates.acquire_steps("partner", 3);
  const std::array steps{user.acquire_step("alice"), rate[0], rate[1]};
  const Decision d = decide(*store, steps, error);
  if (error != Errc::config_changed) return d;
  rates.refresh("partner");                        // somebody changed the rate: nothing was charged
}
}
void once(Store* store, const TokenBucket& bucket, Rng& rng, std::span<const Step> steps) {
const auto id = RequestId::draw(rng);            // keep it over the retries
const Decision d = bucket.try_acquire("alice", 3, id);
const Decision both = decide(*store, Plan(steps).idempotent(id));   // any plan
static_cast<void>(d && both);
}
}  // namespace composing_page

namespace concurrency_page {
void in_a_plan(Store* store, const TokenBucket& bucket, const ConcurrencyLimiter& everyone, Rng& rng) {
const LeaseId id = LeaseId::draw(rng);
const std::array steps{bucket.acquire_step("alice"), everyone.acquire_step(Key{"alice", "everyone"}, id)};
std::array<Decision, 2> each;
std::array<Word, ConcurrencyLimiter::output> told;       // the bucket has no output words of its own
std::error_code error;
const Time asked_at = store->clock().now();
if (decide(*store, steps, error, each, told)) {
  Lease lease = everyone.adopt(Key{"alice", "everyone"}, id, 1, each[1], told, asked_at);
}
}
void stop_job(const LeaseId&);
void renewed(Store* store) {
LeaseRenewer renewer(store->clock());
ConcurrencyLimiter jobs{*store, "jobs", 20, {.ttl = 30s, .renewer = &renewer, .on_lost = stop_job}};
}
}  // namespace concurrency_page

namespace failures_page {
void ask_again();
void give_up();
void conditions(const std::error_code& error) {
if (error == Failure::not_executed) ask_again();  // certainly nothing was charged
if (error == Failure::unknown) give_up();         // it may have been charged: asking again may charge twice
}
void away(Store* redis, Store* memory) {
CircuitBreaker breaker(redis->clock(), {.failures = 5});
FallbackStore store(*redis, breaker, FailurePolicy::local(*memory, 20));   // one of 20 clients
TokenBucket bucket(store, "api", Quota::per_second(1000).burst(100));
}
}  // namespace failures_page

namespace fixed_window_page {
void use(Store* store) {
const FixedWindow reports{*store, "reports", 50,
                          Calendar::daily(load_time_zone("America/New_York"))};
}
}  // namespace fixed_window_page

namespace gates_page {
struct Reply {
  bool rate_exceeded;
  std::size_t scope;
  http::Feedback feedback;
};
Reply call();
void wait(Span span);
Reply use(const Gates& gates, std::span<const Scope> scopes, Backoff& backoff, Rng& rng) {
for (;;) {
  const Decision d = gates.pass(scopes);              // all scopes in one round trip
  if (!d) { wait(d.retry_after); continue; }          // and ask again: it may have been closed anew
  const auto answer = call();
  if (!answer.rate_exceeded) return answer;
  gates.close(scopes[answer.scope], answer.feedback.wait().value_or(backoff.next(rng)));
}
}
}  // namespace gates_page

namespace http_page {
struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;
  auto begin() const { return fields.begin(); }
  auto end() const { return fields.end(); }
  void set(std::string_view name, std::string_view value) { fields.emplace_back(name, value); }
};
struct Client {
  Response get(std::string_view url);
};
void client(Store* store, Client& client, std::string_view url, const Call& call, const TokenBucket& bucket,
            const Key& account) {
const auto fields = call([&] {
  const Time sent = store->clock().now();
  const auto response = client.get(url);
  const http::Feedback feedback = http::parse_feedback(response, store->clock().now(), {.sent = sent});
  http::lower(bucket, account, feedback, feedback.find("requests"));   // the server counts what others did as well
  http::require_served(response.status, feedback);                     // 429: RateLimited; 503: Transient
  return response.fields;
});
static_cast<void>(fields);
}
void plan(Store& store, const TokenBucket& requests, const TokenBucket& budget, std::string_view account, Word cost,
          Response& response) {
const http::Policy calls("calls", requests.quota());
const http::Policy tokens("tokens", budget.quota(), {.unit = "tokens"});
std::array<Decision, 2> each;
std::error_code error;
const Decision whole = decide(store, {requests.acquire_step(account), budget.acquire_step(account, cost)}, error, each);
if (error) throw std::system_error(error);
response.status = whole.allowed ? 200 : 429;
const std::array limits{http::Limited{calls, each[0]}, http::Limited{tokens, each[1]}};
http::limit_headers(limits, {.primary = "calls"}).for_each([&](auto name, auto value) { response.set(name, value); });
}
using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;
using BeastResponse = boost::beast::http::response<boost::beast::http::string_body>;
BeastResponse serve(const BeastRequest& request);
boost::asio::awaitable<BeastResponse> serve_limited(const TokenBucket& bucket, const BeastRequest& request) {
const http::RequestLimit limit(bucket);

const std::string key = request["X-Api-Key"].empty() ? "anonymous" : request["X-Api-Key"];
const http::Admission admission = co_await http::async_admit(limit, key);
if (!admission) co_return http::refusal(request, admission);
auto response = serve(request);
http::set_headers(response, admission);
co_return response;
}
#if __has_include(<httplib.h>)
void serve_limited(httplib::Server& server, const http::RequestLimit<TokenBucket>& limit) {
server.set_pre_routing_handler(http::limit_requests(limit, [](const httplib::Request& request) {
  const std::string key = request.get_header_value("X-Api-Key");
  return key.empty() ? "anonymous" : key;
}));
}
#endif
void server(const TokenBucket& limiter, const Key& key, Response& response) {
const http::Policy policy("api", limiter.quota());
const Decision decision = limiter.try_acquire(key);
http::limit_headers(policy, decision).for_each([&](auto name, auto value) { response.set(name, value); });
}
}  // namespace http_page

namespace memory_store_page {
void sizes() {
const auto store = make_memory_store({.max_keys = 5'000'000, .max_bytes = std::size_t{2} << 30});
}
}  // namespace memory_store_page

namespace options_page {
void named(Store& store, LeaseRenewer& renewer) {
const Gates gates(store, "model", {"account"}, {.cap = 1h, .ramp = 30s});
const ConcurrencyLimiter jobs(store, "jobs", 20, {.ttl = 30s, .renewer = &renewer});
}
}  // namespace options_page

namespace simulation_page {
void servers(sluice::sim::World& world) {
sim::Resource database(world, 4);                    // or: 4, sim::Discipline::priority
}
boost::asio::awaitable<void> query(sim::World& world, sim::Resource& database) {
  const sim::Resource::Server server = co_await database.acquire({.deadline = world.now() + 1s});
  if (!server) co_return;                            // timed out
  co_await sluice::asio::sleep_for(world.clock(), 5ms);
}                                                    // releases the server
}  // namespace simulation_page

namespace waiting_page {
void next(const TokenBucket& limit, Cost cost, const std::string& customer) {
auto now = limit.acquire("api", 1, 10s, {.priority = 1});         // an interactive call
auto fair = limit.acquire("api", cost, 1h, {.flow = customer, .weight = 3});
static_cast<void>(now && fair);
}
void across(ConcurrencyLimiter& jobs) {
jobs.set_wait_queue({.across_processes = false});   // in every process
}
void retry_later(Span span);
void several(const TokenBucket& requests, const TokenBucket& tokens, const ConcurrencyLimiter& jobs,
             const Gates& gates, const Scope& account, LeaseRenewer& renewer, Word tokens_used) {
Grants granted =
    acquire({{requests, "alice"}, {tokens, "alice", 800}, {jobs, "alice"}, {gates, account}}, 10s);
if (!granted) return retry_later(granted.decision().retry_after);
granted.get<Lease>(2).keep_alive(renewer);
granted.settle(1, tokens_used);
}
}  // namespace waiting_page

namespace limit_tables_page {
void shown(Store& store) {
const config::LimitFile file("limits.toml");
const auto quotas = std::make_shared<QuotaTable>(file.quotas("api"));
const TokenBucket bucket(store, "api", quotas);

config::LimitWatch watch("limits.toml", store.clock(), [](const config::FileChange& change) {
  for (const std::string& line : change.changes) std::clog << line << '\n';
  if (!change.error.empty()) std::clog << "limits not changed: " << change.error << '\n';
});
watch.keep("api", quotas);
watch.start();
}
}  // namespace limit_tables_page

namespace crawler_page {
Quota one_each(std::chrono::seconds delay) {
  delay = std::clamp<std::chrono::seconds>(delay, 1s, 42min);
  while (42min % delay != 0s) ++delay;
  return Quota::per(1, delay).burst(1);
}
void shown(Store& store) {
LimitList delays(one_each(1s), 42min);  // everyone
delays.limit("slow.example", one_each(11s));  // 12 s
const TokenBucket slots(store, "requests", std::make_shared<QuotaTable>(delays));
}
}  // namespace crawler_page

namespace observing_page {
void observe(Clock& clock, Metrics& metrics) {
RedisOptions options;
options.on_event = observe_connections(metrics, "redis");
CircuitBreaker breaker(clock, {}, observe_breaker(metrics, "redis"));
}
void wait(const TokenBucket& bucket) {
for (const WaitingCall& call : diagnose(bucket)) std::cout << call << '\n';
}
}  // namespace observing_page

namespace writing_a_store_page {
struct Shown : Store {
  Clock& clock() noexcept override;
void execute(const Plan& plan, Completion done) noexcept override;
};
#include <sluice/extend/store_wrapper.hpp>

class CountingStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    ++plans;
    StoreWrapper::execute(plan, std::move(done));
  }
  std::atomic<int> plans{0};
};
void check(Store& store) {
#include <sluice/testing/conformance.hpp>

const auto report = sluice::testing::check_conformance(store);
std::cout << report.text();   // converts to true if every claim holds
}
#define INFO(text) std::cerr << text
#define CHECK(condition) static_cast<void>(condition)
void assertions(const sluice::testing::Report& report) {
for (const auto& claim : report.claims) {
  INFO(claim.name << ": " << claim.failure);
  CHECK(claim.ok);
}
}
#undef INFO
#undef CHECK
}  // namespace writing_a_store_page

}  // namespace pages
