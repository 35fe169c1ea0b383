// sluice doctor: asks each server, and says what to do.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/redis/redis_store.hpp"
#include "tool/commands.hpp"
#include "tool/doctor.hpp"

namespace sluice::tool {
namespace {

constexpr int questions = 21;
constexpr const char* probe = "sluice";  // the tag of keys that are only read

/// A setting, if the user may read it.
std::string setting(Server& server, std::string_view name) {
  const Reply reply = server({"CONFIG", "GET", name});
  return reply.elements.size() == 2 ? reply.elements[1].text : std::string();
}

struct Latency {
  Span median;
  Span longest;
  std::optional<Span> ahead;  ///< of the server's clock; empty if the user may not ask
};

Latency measure(Server& server) {
  std::vector<Span> times;
  std::optional<Span> ahead;
  SystemClock clock;
  for (int i = 0; i < questions; ++i) {
    const Time before = clock.now();
    const Reply reply = server({"TIME"});
    times.push_back(clock.now() - before);
    if (is_not_permitted(reply)) continue;
    if (times.back() == *std::ranges::min_element(times)) {
      ahead = to_time(server.time_of(reply)) - (before + times.back() / 2);
    }
  }
  std::ranges::sort(times);
  return {times[questions / 2], times.back(), ahead};
}

/// The commands that the user may not use; nothing if the server does not tell.
std::optional<std::vector<std::string>> denied_of(Server& server, const std::string& user,
                                                  const std::vector<Words>& commands) {
  std::vector<std::string> names;
  for (const Words& words : commands) {
    Words dry{"ACL", "DRYRUN", user};
    dry.insert(dry.end(), words.begin(), words.end());
    const Reply reply = server.pipeline({&dry, 1}).front();
    if (reply.kind == Reply::Kind::error) return std::nullopt;
    if (reply.text != "OK") names.emplace_back(words.front());
  }
  return names;
}

/// What the user of a store may not do; empty if the server does not tell.
std::optional<Denied> denied(Server& server, const std::string& user, const std::string& prefix,
                             RedisScripts scripts) {
  const std::string key = prefix + "{" + probe + "}:doctor";
  std::vector<Words> needed{{"TIME"},
                            {"GET", key},
                            {"MGET", key},
                            {"PSETEX", key, "1", "x"},
                            {"SETRANGE", key, "0", "x"},
                            {"GETRANGE", key, "0", "1"},
                            {"PEXPIRE", key, "1"}};
  std::vector<Words> loading;
  if (scripts == RedisScripts::functions) {
    needed.insert(needed.begin(), {"FCALL", probe, "1", key});
    loading.push_back({"FUNCTION", "LOAD", ""});
  } else {
    needed.insert(needed.begin(), {{"EVALSHA", "0", "1", key}, {"EVAL", "return 1", "1", key}});
  }
  const std::vector<Words> wake_ups{{"PUBLISH", key, ""}, {"SUBSCRIBE", key}, {"UNSUBSCRIBE", key}};
  auto calls = denied_of(server, user, needed);
  auto wakes = denied_of(server, user, wake_ups);
  auto loads = denied_of(server, user, loading);
  if (!calls || !wakes || !loads) return std::nullopt;
  return Denied{std::move(*calls), std::move(*wakes), std::move(*loads)};
}

/// The user of the connection.
std::string user_of(Server& server, const Session& session) {
  const Reply reply = server({"ACL", "WHOAMI"});
  if (reply.kind != Reply::Kind::error && !reply.text.empty()) return reply.text;
  return session.redis.username.empty() ? "default" : session.redis.username;
}

Check login(const Session& session, const std::string& user) {
  const bool is_open = session.redis.password.empty() && !session.redis.credentials;
  if (!is_open) return {"login", true, "as " + user};
  if (!session.redis.unix_socket.empty()) return {"login", true, "as " + user + ", by the socket"};
  return {"login", false, "as " + user + " without a password: who reaches the port can do it",
          "Set a password, or a user with the rights of the store alone."};
}

/// A question of a limiter, by the scripts of the store, which changes nothing.
Check call(const Session& session, const std::string& prefix) {
  try {
    RedisOptions options = session.redis;
    options.key_prefix = prefix;
    const auto store = make_redis_store(std::move(options));
    const TokenBucket bucket(*store, "doctor", Quota::per_second(1));
    (void)bucket.peek(probe);
    SystemClock clock;
    const Time before = clock.now();
    (void)bucket.peek(probe);
    return {"call", true, "decided in " + duration(clock.now() - before)};
  } catch (const std::exception& error) {
    return {"call", false, error.what(), "docs/failures.md says what each error means."};
  }
}

Checks look_at(Server& server, const Session& session, const std::string& prefix) {
  Checks checks;
  checks.push_back({"connection", true, server.address() + (session.redis.tls ? ", TLS" : "")});
  const std::string user = user_of(server, session);
  checks.push_back(login(session, user));
  checks.push_back(check_rights(user, denied(server, user, prefix, session.redis.scripts)));
  checks.push_back(check_version(server.told().version));
  const Info info = read_info(server({"INFO"}).text);
  checks.push_back(check_role(info));
  checks.push_back(check_eviction(info));
  checks.push_back(check_memory(info));
  checks.push_back(check_persistence(info, setting(server, "appendfsync")));
  checks.push_back(check_replicas(info, setting(server, "min-replicas-to-write")));
  const Latency latency = measure(server);
  checks.push_back(check_clock(latency.ahead));
  checks.push_back(check_latency(latency.median, latency.longest));
  return checks;
}

void print(const Session& session, const std::string& server, const Checks& checks) {
  if (session.style.json) {
    nlohmann::ordered_json result{{"server", server}, {"checks", nlohmann::json::array()}};
    for (const Check& each : checks) {
      result["checks"].push_back(
          {{"name", each.name}, {"fine", each.is_fine}, {"text", each.text}});
      if (!each.advice.empty()) result["checks"].back()["advice"] = each.advice;
    }
    print_json(result);
    return;
  }
  for (const Check& each : checks) {
    const std::string_view found = each.is_fine ? "ok  " : "look";
    const std::string head = fmt::format("{} {:<12} ", found, each.name);
    const std::string lines = behind(session.style, head, each.text, head.size());
    fmt::print("{}{}\n", painted(session.style, each.is_fine ? Colour::green : Colour::red, found),
               lines.substr(found.size()));
    if (!each.advice.empty()) fmt::print("     {}\n", wrapped(session.style, each.advice, 5));
  }
}

std::string advice_for(const Unreachable& error) {
  const std::string_view text = error.what();
  if (text.starts_with("login")) return "Look at the user and the password, and the version.";
  if (text.starts_with("TLS")) return "Look at the parameters of TLS in the URL: docs/redis.md.";
  return "Look at the address, the firewall, and whether the server runs.";
}

}  // namespace

int examine(const Session& session, const std::string& prefix) {
  try {
    const Fleet fleet(session.redis);
    bool is_fine = true;
    const Check decided = call(session, prefix);
    for (const auto& server : fleet.servers()) {
      Checks checks = look_at(*server, session, prefix);
      if (server == fleet.servers().front()) checks.push_back(decided);
      print(session, server->address(), checks);
      is_fine = is_fine && std::ranges::all_of(checks, &Check::is_fine);
    }
    return is_fine ? fine : objected;
  } catch (const Unreachable& error) {
    print(session, session.url, {{"connection", false, error.what(), advice_for(error)}});
    return unreachable;
  }
}

}  // namespace sluice::tool
