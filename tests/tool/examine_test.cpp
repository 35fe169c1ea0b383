// doctor on real servers, and --functions.
#include <fstream>
#include <map>
#include <regex>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/fake/server.hpp"
#include "tests/support/frozen_redis.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct Looked {
  int code;
  std::map<std::string, json> checks;  // by their names

  [[nodiscard]] bool is_fine(const std::string& name) const { return checks.at(name)["fine"]; }
  [[nodiscard]] std::string text(const std::string& name) const { return checks.at(name)["text"]; }
};

Looked doctor(const std::string& url, const std::string& words = "") {
  const Ran ran = sluice_tool(url, "doctor --json " + words);
  INFO(ran.output);
  Looked looked{ran.code, {}};
  const std::vector<json> lines = json_lines(ran.output);
  for (const json& each : lines.at(0)["checks"]) looked.checks[each["name"]] = each;
  return looked;
}

const std::vector<std::string> set_up{"appendonly yes", "maxmemory-policy noeviction"};

TEST_CASE("doctor finds what a server lacks, and nothing on one that is set up", "[redis]") {
  if (redis_left_out()) return;
  RedisServer good(set_up);
  const Looked fine = doctor(url_of(good));
  CHECK(fine.code == 0);
  CHECK(fine.checks.size() == 12);
  RedisClient client(good.unix_socket());
  CHECK(client({"DBSIZE"}).integer == 0);

  RedisServer bad({"appendonly no", "maxmemory-policy allkeys-lru", "maxmemory 100mb"});
  RedisClient admin(bad.unix_socket());
  admin({"ACL", "SETUSER", "app", "on", ">secret", "~app:*", "+@all", "-evalsha", "-publish"});
  const std::string url = "unix://app:secret@" + bad.unix_socket();
  const Looked found = doctor(url, "--prefix app:");
  CHECK(found.code == 1);
  CHECK(found.is_fine("connection"));
  for (const char* const each : {"rights", "eviction", "persistence", "call"}) {
    INFO(each);
    CHECK_FALSE(found.is_fine(each));
  }
  const Ran text = shell(url, "COLUMNS=40 \"$SLUICE\" doctor --prefix app: 2>&1");
  CHECK_THAT(text.output, contains_text("EVALSHA") && contains_text("Set appendonly yes"));
  std::istringstream stream(text.output);
  for (std::string line; std::getline(stream, line);) CHECK(line.size() <= 40);
  CHECK(text.output.find("secret") == std::string::npos);
  const Ran gone = sluice_tool("redis://app:secret@127.0.0.1:1", "doctor");
  CHECK(gone.code == 3);
  CHECK_THAT(gone.output,
             contains_text("Connection refused") && contains_text("whether the server"));
}

TEST_CASE("doctor looks at what the user may not ask", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server(set_up);
  RedisClient admin(server.unix_socket());
  admin({"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-info"});
  const std::string url = "unix://app:secret@" + server.unix_socket();
  const Looked without_info = doctor(url);
  CHECK(without_info.code == 1);
  for (const char* const each : {"role", "eviction", "memory", "persistence", "replicas"}) {
    INFO(each);
    CHECK_FALSE(without_info.is_fine(each));
    CHECK(without_info.text(each) == "not told");
    CHECK_THAT(without_info.checks.at(each)["advice"].get<std::string>(), contains_text("+info"));
  }
  CHECK(without_info.is_fine("version"));  // HELLO tells it
  CHECK(without_info.is_fine("rights"));
  admin({"ACL", "SETUSER", "app", "+info", "-acl|dryrun", "-acl|whoami"});
  const Looked without_acl = doctor(url);
  CHECK_FALSE(without_acl.is_fine("rights"));
  CHECK(without_acl.is_fine("role"));
  CHECK(without_acl.text("login") == "as app");
}

TEST_CASE("doctor finds all that a user lacks who may do nothing", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server(set_up);
  RedisClient admin(server.unix_socket());
  admin({"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "-@all"});
  const std::string url = "unix://app:secret@" + server.unix_socket();
  const Looked nothing = doctor(url);
  CHECK(nothing.code == 1);
  CHECK(nothing.is_fine("connection"));
  CHECK(nothing.is_fine("latency"));
  CHECK(nothing.text("clock") == "not told");
  CHECK(nothing.checks.at("clock")["advice"] ==
        "Grant the user +time, or ask who runs the server.");
  CHECK_THAT(nothing.checks.at("rights")["advice"].get<std::string>(),
             contains_text("+acl|dryrun"));
  CHECK_THAT(nothing.text("call"), contains_text("NOPERM"));
  admin({"ACL", "SETUSER", "app", "+acl|dryrun"});
  CHECK_THAT(doctor(url).text("rights"), contains_text("app lacks EVALSHA, EVAL, TIME, GET"));
}

TEST_CASE("doctor says who logs in, and that a port is open to everybody", "[redis]") {
  if (redis_left_out()) return;
  RedisServer open(set_up);
  const Looked by_port = doctor("redis://127.0.0.1:" + std::to_string(open.port()));
  CHECK(by_port.code == 1);
  CHECK_FALSE(by_port.is_fine("login"));
  CHECK(by_port.text("login") == "as default without a password: who reaches the port can do it");
  CHECK_THAT(by_port.checks.at("login")["advice"].get<std::string>(),
             contains_text("Set a password"));
  for (const auto& [name, check] : by_port.checks) CHECK(check["fine"] == (name != "login"));
  const Looked by_socket = doctor(url_of(open));
  CHECK(by_socket.is_fine("login"));
  CHECK(by_socket.text("login") == "as default, by the socket");

  RedisServer shut({.config = set_up, .password = "hunter2hunter2"});
  const Looked by_password =
      doctor("redis://:hunter2hunter2@127.0.0.1:" + std::to_string(shut.port()));
  CHECK(by_password.is_fine("login"));
  CHECK(by_password.text("login") == "as default");
}

/// The first number of a text in microseconds.
double us_in(const std::string& text) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex("^([0-9.]+) (us|ms|s) ")));
  return std::stod(found[1]) * (found[2] == "us" ? 1 : found[2] == "ms" ? 1e3 : 1e6);
}

TEST_CASE("doctor measures the server's clock", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer same(set_up);
  const Looked fine = doctor(url_of(same));
  CHECK(fine.is_fine("clock"));
  CHECK(us_in(fine.text("clock")) < 400'000);
  for (const Span shift : {30s, -30s}) {
    const RedisServer wrong(set_up, shifted_clock(shift));
    const Looked found = doctor(url_of(wrong));
    const std::string text = found.text("clock");
    INFO(text);
    CHECK_FALSE(found.is_fine("clock"));
    CHECK(std::abs(us_in(text) - 30e6) < 500'000);
    CHECK_THAT(text, contains_text(shift > 0s ? "s ahead of this" : "s behind this"));
  }
}

TEST_CASE("doctor measures the way to the server", "[redis]") {
  if (redis_left_out()) return;
  const RedisServer server(set_up);
  const std::string pattern = "[0-9.]+ (us|ms|s) at the median, [0-9.]+ (us|ms|s) at most";
  const Looked near = doctor(url_of(server));
  CHECK(near.is_fine("latency"));
  CHECK(std::regex_match(near.text("latency"), std::regex(pattern)));
  CHECK(us_in(near.text("latency")) < 50'000);
  TcpProxy proxy(server.port());
  proxy.set({.delay = 40ms});  // in each direction
  const Looked far = doctor("redis://127.0.0.1:" + std::to_string(proxy.port()));
  INFO(far.text("latency"));
  CHECK_FALSE(far.is_fine("latency"));
  CHECK(us_in(far.text("latency")) >= 80'000);
  CHECK(us_in(far.text("latency")) < 400'000);
}

TEST_CASE("a server that is too old is refused with its version", "[redis]") {
  const FakeServer server([](Peer& peer, int) {
    while (const auto command = peer.read()) {
      const bool is_hello = command->at(0) == "HELLO";
      if (!peer.send(is_hello ? hello_reply("6.2.14") : "+OK\r\n")) return;
    }
  });
  const std::string url = "redis://127.0.0.1:" + std::to_string(server.port());
  const std::string why = "the server is redis 6.2.14, which is older than 7.0";
  const Ran listed = sluice_tool(url, "keys");
  CHECK(listed.code == 3);
  CHECK_THAT(listed.output, contains_text(why));
  const Ran looked = sluice_tool(url, "doctor");
  CHECK(looked.code == 3);
  CHECK_THAT(looked.output, contains_text("look connection") && contains_text(why) &&
                                contains_text("the version"));
}

/// The words of the ACL line of docs/failures.md, for a user who calls functions.
std::vector<std::string> documented_user() {
  std::ifstream file(SLUICE_RIGHTS);
  std::string line;
  while (std::getline(file, line) && line.find("ACL SETUSER app on") == std::string::npos) {
  }
  std::string all = line;
  while (std::getline(file, line) && line != "```") all += " " + line;
  const std::size_t scripts = all.find("+evalsha +eval ");
  REQUIRE(scripts != std::string::npos);
  all.replace(scripts, std::string("+evalsha +eval").size(), "+fcall");
  all.replace(all.find(">..."), 4, ">secret");
  std::istringstream stream(all);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// A server with the library of functions, and the documented user of it.
struct Functions {
  RedisServer server{set_up};
  RedisClient admin{server.unix_socket()};
  std::string url = "unix://app:secret@" + server.unix_socket();
  std::unique_ptr<RedisStore> store;

  Functions() {
    REQUIRE_FALSE(admin({"FUNCTION", "LOAD", redis_functions()}).is_error());
    const std::vector<std::string> words = documented_user();
    REQUIRE_FALSE(
        admin.command(std::vector<std::string_view>(words.begin(), words.end())).is_error());
    RedisOptions options = options_of(server);
    options.key_prefix = "app:";
    store = make_redis_store(std::move(options));
  }

  void grant(std::initializer_list<std::string_view> rights) {
    std::vector<std::string_view> words{"ACL", "SETUSER", "app"};
    words.insert(words.end(), rights);
    REQUIRE_FALSE(admin.command(words).is_error());
  }
};

TEST_CASE("doctor passes a user who calls functions, with --functions", "[redis]") {
  if (redis_left_out()) return;
  Functions site;
  // docs/failures.md: wake-ups; docs/operator.md: doctor.
  site.grant({"+publish", "+subscribe", "+unsubscribe", "&app:*"});
  site.grant({"+info", "+config|get", "+acl|dryrun", "+acl|whoami"});
  const Looked fine = doctor(site.url, "--prefix app: --functions");
  CHECK(fine.code == 0);
  CHECK(fine.text("rights") ==
        "app may do all that the store does; another user loads the library of functions");
  CHECK_THAT(fine.text("call"), contains_text("decided in"));

  const Looked without = doctor(site.url, "--prefix app:");
  CHECK(without.code == 1);
  CHECK(without.text("rights") == "app lacks EVALSHA, EVAL");
  CHECK_FALSE(without.is_fine("call"));
  for (const auto& [name, check] : without.checks) {
    INFO(name);
    CHECK(check["fine"] == (name != "rights" && name != "call"));
  }

  site.grant({"+function|load"});
  CHECK(doctor(site.url, "--prefix app: --functions").text("rights") ==
        "app may do all that the store does");
  site.grant({"-function|load", "-fcall"});
  const Looked denied = doctor(site.url, "--prefix app: --functions");
  CHECK(denied.text("rights") == "app lacks FCALL");
  CHECK_FALSE(denied.is_fine("call"));
  site.grant({"+fcall"});
  site.admin({"FUNCTION", "FLUSH"});
  const Looked unloaded = doctor(site.url, "--prefix app: --functions");
  CHECK(unloaded.is_fine("rights"));
  CHECK_FALSE(unloaded.is_fine("call"));
}

TEST_CASE("a user who calls functions changes limits, with --functions", "[redis]") {
  if (redis_left_out()) return;
  Functions site;
  const SharedTokenBucket bucket(*site.store, "shared");
  bucket.configure("a", Quota::per_day(5));
  REQUIRE(bucket.try_acquire("a", 5).allowed);
  const Gates gates(*site.store, "adwords", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope scope = gates.scope("account", "one");
  const Ran shown = sluice_tool(site.url, "show 'app:{a}:shared'");
  CHECK_THAT(shown.output, contains_text("5 of 5 used"));
  CHECK(shown.output.find("expires") == std::string::npos);  // as PTTL is not permitted
  const auto change = [&](const std::string& words) {
    const std::string before = site.admin({"GET", "app:{a}:shared"}).text;
    const Ran refused = sluice_tool(site.url, words + " --yes");
    INFO(refused.output);
    CHECK(refused.code == 2);
    CHECK(site.admin({"GET", "app:{a}:shared"}).text == before);
    const Ran done = sluice_tool(site.url, words + " --yes --functions");
    INFO(done.output);
    CHECK(done.code == 0);
  };
  change("reset 'app:{a}:shared'");
  CHECK(bucket.try_acquire("a").allowed);
  change("block 'app:{a}:shared' --for 50s");
  CHECK(bucket.try_acquire("a").retry_after > 40s);
  change("close 'app:{adwords}:account=one' --for 30min");
  CHECK(gates.pass(scope).retry_after > 29min);
  change("open 'app:{adwords}:account=one'");
  CHECK(gates.pass(scope).allowed);
}

}  // namespace
}  // namespace sluice::test
