// What a call, the figures and the events say of a connection that is not made, or is lost.
// Threading: as calls_test.cpp; events come on the store's thread.
#include <atomic>
#include <future>

#include "backends/redis/connection/journal.hpp"
#include "sluice/fallback_store.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/rig.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using Kind = RedisEvent::Kind;

const Quota quota = Quota::per_second(10);
const std::string canary_user = "c4n4ry-us3r";
const std::string canary = "c4n4ry-p4ssw0rd";

std::string address_of(const RedisOptions& options) {
  return "127.0.0.1:" + std::to_string(options.port);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string what_of(const auto& call) {
  try {
    static_cast<void>(call());
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "";
}

/// The three ways tell of the same failure: `step` at `address`, and a cause with `part`.
void check_told(RedisOptions options, RedisStep step, const std::string& address,
                const std::string& part, Errc code = Errc::not_connected) {
  Events events;
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", quota);
  REQUIRE(eventually([&] { return store->stats().failed_attempts > 0; }));
  const std::string text =
      what_of([&] { return decide(*store, Plan(bucket.acquire_step("a")).within(50ms)); });
  const auto last = store->stats().last_failure;
  REQUIRE(last);
  CAPTURE(text, last->text());
  for (const std::string& each : {text, last->text(), events.all().at(0).text()}) {
    CHECK(has(each, address + ": "));
    CHECK(has(each, part));
  }
  CHECK(has(text, "sluice::decide: "));
  CHECK(has(text, make_error_code(code).message()));
  CHECK(last->kind == Kind::failed);
  CHECK(last->step == step);
  CHECK(last->address == address);
  CHECK(last->error == code);
  CHECK(events.count(Kind::failed, step, part) > 0);
  CHECK(events.count(Kind::connected, RedisStep::serve) == 0);
}

/// Answers each command as `replies` says, else with +OK.
FakeServer::Behaviour replying(std::map<std::string, std::string> replies) {
  return [replies = std::move(replies)](Peer& peer, int) {
    while (const auto command = peer.read()) {
      const auto found = replies.find(command->at(0));
      if (!peer.send(found == replies.end() ? "+OK\r\n" : found->second)) return;
    }
  };
}

}  // namespace

TEST_CASE("nobody listening is told with the address and the system's words", "[fake][reason]") {
  RedisOptions options;
  {
    const FakeServer gone([](Peer&, int) {});
    options = options_for(gone);
  }
  check_told(options, RedisStep::connect, address_of(options), "connect to 127.0.0.1:");
  check_told(options, RedisStep::connect, address_of(options), "Connection refused");
  options.unix_socket = "/nonexistent/socket";
  check_told(options, RedisStep::connect, "/nonexistent/socket", "No such file or directory");
}

TEST_CASE("what a server says at login, and of a database, is told in its words",
          "[fake][reason]") {
  struct Said {
    std::map<std::string, std::string> replies;
    std::string told;
    RedisStep step = RedisStep::login;
    Errc code = Errc::not_connected;
  };
  const std::string unwanted =
      "ERR AUTH <password> called without any password configured for the default user";
  for (const auto& [replies, told, step, code] :
       {Said{{{"AUTH", "-" + unwanted + ".\r\n"}}, "login at ADDRESS: " + unwanted},
        Said{{{"AUTH", "-WRONGPASS invalid username-password pair\r\n"}},
             "WRONGPASS invalid",
             RedisStep::login,
             Errc::wrong_password},
        Said{{{"SELECT", "-ERR DB index is out of range\r\n"}},
             "SELECT at ADDRESS: ERR DB index is out of range",
             RedisStep::select},
        Said{{{"HELLO", "-ERR max number of clients reached\r\n"}},
             "ERR max number of clients reached",
             RedisStep::login,
             Errc::too_many_clients},
        Said{{{"HELLO", hello_reply("6.2.14")}}, "redis 6.2.14, which is older than 7.0"}}) {
    FakeServer server(replying(replies));
    RedisOptions options = options_for(server);
    if (replies.contains("AUTH")) options.password = canary;
    if (replies.contains("SELECT")) options.database = 99;
    std::string part = told;
    const std::string place = "ADDRESS";
    const auto at = part.find(place);
    if (at != std::string::npos) part.replace(at, place.size(), address_of(options));
    check_told(options, step, address_of(options), part, code);
  }
}

TEST_CASE("a TLS port, a web server, one that closes and one that is mute are told apart",
          "[fake][reason]") {
  const auto sends = [](std::string bytes) {
    return [bytes = std::move(bytes)](Peer& peer, int) {
      if (peer.read()) peer.send(bytes);
    };
  };
  const auto check = [](const FakeServer::Behaviour& behaviour, const std::string& part) {
    FakeServer server(behaviour);
    RedisOptions options = options_for(server);
    options.connect_timeout = 200ms;
    check_told(options, RedisStep::login, address_of(options), part);
  };
  check(sends({"\x15\x03\x01\x00\x02\x02\x46", 7}), "the server speaks TLS");
  check(sends("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"),
        "no reply of a Redis server: HTTP/1.1 400 Bad Request");
  check([](Peer& peer, int) { peer.read(); }, "the server closed the connection");
  check(
      [](Peer& peer, int) {
        if (peer.read()) peer.reset_on_close();
      },
      "Connection reset by peer");
  check([](Peer& peer, int) { peer.wait_for_close(); }, "no answer within 200 ms");
}

TEST_CASE("while the first attempt is under way, the exception tells what it waits for",
          "[fake][reason]") {
  FakeServer server([](Peer& peer, int) { peer.wait_for_close(); });
  RedisOptions options = options_for(server);
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", quota);
  REQUIRE(eventually([&] { return server.connections() == 1; }));
  const std::string part = "login at " + address_of(options) + ": no answer yet";
  CHECK(eventually([&] {
    return has(what_of([&] { return decide(*store, Plan(bucket.acquire_step("a")).within(20ms)); }),
               part);
  }));
  CHECK_FALSE(store->stats().last_failure);
}

TEST_CASE("neither user nor password is shown, even if the server echoes them", "[fake][reason]") {
  std::string upper = canary;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::string quoted = "'" + canary_user + "' '" + canary + "'";
  const std::vector<std::string> echoes{
      "-ERR unknown command 'AUTH', with args beginning with: " + quoted + "\r\n",
      "-ERR with args beginning with: '" + canary_user.substr(0, 7) + "' '" + canary.substr(2, 9) +
          "'\r\n",
      "-ERR with args beginning with: '" + upper + "'\r\n",
      "-ERR there is no user " + canary_user.substr(7) + "\r\n",
      "-WRONGPASS " + std::string(198, 'x') + quoted + "\r\n",
      "HTTP/1.1 400 " + quoted + "\r\n\r\n"};
  for (const std::string& echo : echoes) {
    CAPTURE(echo);
    FakeServer server([&](Peer& peer, int) {
      if (peer.read()) peer.send(echo);
    });
    Events events;
    RedisOptions options = options_for(server);
    options.username = canary_user;
    options.password = canary;
    options.on_event = events.listener();
    const auto store = make_redis_store(options);
    const TokenBucket bucket(*store, "api", quota);
    REQUIRE(eventually([&] { return !events.all().empty(); }));
    std::string seen =
        what_of([&] { return decide(*store, Plan(bucket.acquire_step("a")).within(50ms)); });
    seen += store->stats().last_failure->text();
    for (const RedisEvent& event : events.all()) seen += event.text() + event.address;
    std::ranges::transform(seen, seen.begin(), [](unsigned char c) { return std::tolower(c); });
    CAPTURE(seen);
    CHECK(has(seen, "login at 127.0.0.1:"));
    for (const std::string& secret : {canary_user, canary}) {
      for (std::size_t i = 0; i + 4 <= secret.size(); ++i) {
        CHECK_FALSE(has(seen, secret.substr(i, 4)));
      }
    }
  }
}

TEST_CASE("a password of few letters makes no holes in what the server says", "[fake][reason]") {
  const std::string known = "WRONGPASS invalid username-password pair or user is disabled.";
  const std::string hidden = "words that are not shown, because they may quote the login";
  for (const std::string password : {"WRONG", "pass", "a", "in"}) {
    for (const std::string& words : {known, "ERR no such user: " + password}) {
      CAPTURE(password, words);
      const Rig rig(replying({{"AUTH", "-" + words + "\r\n"}}),
                    [&](RedisOptions& options) { options.password = password; });
      REQUIRE(eventually([&] { return rig.stats().failed_attempts > 0; }));
      CHECK(rig.stats().last_failure->cause == (words == known ? known : hidden));
    }
  }
}

TEST_CASE("words of the server are shown on one line, and not at any length", "[fake][reason]") {
  const Rig rig(replying({{"AUTH", "-ERR \x1b[2J\t" + std::string(3000, 'y') + "\r\n"}}),
                [](RedisOptions& options) { options.password = canary; });
  REQUIRE(eventually([&] { return rig.stats().failed_attempts > 0; }));
  const std::string cause = rig.stats().last_failure->cause;
  CHECK(cause.starts_with("ERR ?[2J?yyyy"));
  CHECK(cause.ends_with("y..."));
  CHECK(cause.size() == 203);
}

TEST_CASE("every form of a call that throws tells why there is no connection", "[fake][reason]") {
  FakeServer server(replying({{"SELECT", "-ERR DB index is out of range\r\n"}}));
  RedisOptions options = options_for(server);
  options.database = 99;
  options.call_timeout = 50ms;
  const auto store = make_redis_store(options);
  REQUIRE(eventually([&] { return store->stats().failed_attempts > 0; }));
  const std::string part = "SELECT at " + address_of(options) + ": ERR DB index is out of range";
  const TokenBucket bucket(*store, "api", quota);
  CHECK(has(what_of([&] { return bucket.try_acquire("a"); }), "TokenBucket::try_acquire: " + part));
  CHECK(has(what_of([&] { bucket.future_try_acquire("a").get(); }),
            "TokenBucket::future_try_acquire: " + part));
  CHECK(has(what_of([&] { return bucket.acquire("a", 1, 1s); }), "TokenBucket::acquire: " + part));
  CHECK(has(what_of([&] { bucket.reset("a"); }), "TokenBucket::reset: " + part));
  CircuitBreaker breaker(store->clock(), {.failures = 1000});
  FallbackStore fallback(*store, breaker, FailurePolicy::closed());
  CHECK(has(what_of([&] { TokenBucket(fallback, "api", quota).reset("a"); }), part));
  // An error that has nothing to do with it tells nothing of it.
  std::error_code error;
  static_cast<void>(bucket.try_acquire("a", error));
  CHECK(error == Errc::not_connected);
  CHECK_FALSE(has(what_of([&] { return bucket.try_acquire("a", 11); }), "SELECT"));
}

TEST_CASE("an error without a code of its own is told in the server's words, once",
          "[fake][reason]") {
  FakeServer server([](Peer& peer, int) {
    for (int i = 0; const auto call = peer.read_call(); ++i) {
      if (!peer.send(i % 2 == 0 ? "-ERR the backend \x1b is away\r\n" : allowing(*call, 1))) return;
    }
  });
  const RedisOptions options = options_for(server);
  const auto store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", quota);
  const std::string part = address_of(options) + ": ERR the backend ? is away";
  for (int i = 0; i < 2; ++i) {
    CHECK(has(what_of([&] { return bucket.try_acquire("a"); }), part));
    CHECK(what_of([&] { return bucket.try_acquire("a"); }).empty());
    CHECK(eventually([&] { return !store->reason_of(Errc::server_error); }));
  }
  CHECK(store->stats().connections == 1);
}

TEST_CASE("an error with a code of its own is told by that, without the user whom the words name",
          "[fake][reason]") {
  const Rig rig([](Peer& peer, int) {
    while (peer.read_call()) {
      if (!peer.send("-NOPERM User " + canary_user + " has no permissions\r\n")) return;
    }
  });
  const std::string text =
      what_of([&] { return TokenBucket(*rig.store, "api", quota).try_acquire("a"); });
  CHECK(has(text, make_error_code(Errc::no_permission).message()));
  CHECK_FALSE(has(text, canary_user));
}

TEST_CASE("an event tells each connection, and why it was lost", "[fake][reason]") {
  FakeServer server([](Peer& peer, int number) {
    const auto first = peer.read_call();
    if (!first || !peer.send(allowing(*first, 1))) return;
    if (number == 0) return;
    if (number == 1) peer.send("garbage");
    peer.wait_for_close();
  });
  Events events;
  RedisOptions options = options_for(server);
  options.stall_timeout = 100ms;
  options.on_event = events.listener();
  const auto store = make_redis_store(options);
  const Bucket bucket(*store, quota);
  const auto lost = [&](std::string_view part) {
    return eventually([&] { return events.count(Kind::lost, RedisStep::serve, part) == 1; });
  };
  CHECK_FALSE(bucket.error("a", 20s));
  CHECK(lost("the server closed the connection"));
  CHECK_FALSE(bucket.error("a", 20s));
  CHECK(lost("an answer that makes no sense"));
  CHECK_FALSE(bucket.error("a", 20s));
  CHECK(bucket.error("a", 20s) == Errc::unknown);  // not answered
  CHECK(lost("no answer within 100 ms"));
  CHECK(eventually([&] { return events.count(Kind::connected, RedisStep::serve) == 4; }));
  const auto all = events.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].kind == (i % 2 == 0 ? Kind::connected : Kind::lost));
    CHECK(all[i].address == address_of(options));
    CHECK(all[i].cause.empty() == (i % 2 == 0));
    CHECK(!all[i].error == (i % 2 == 0));
  }
  CHECK(store->stats().failed_attempts == 0);
}

TEST_CASE("an event may destroy the store, and is the last", "[fake][reason]") {
  const auto kind = GENERATE(Kind::connected, Kind::failed, Kind::lost);
  FakeServer server([=](Peer& peer, int) {
    if (kind == Kind::failed) return;
    const auto call = peer.read_behind_login();
    if (kind == Kind::lost) return;
    peer.wait_for_close();
  });
  std::atomic<bool> destroyed{false};
  std::atomic<int> late{0};
  std::atomic<bool> is_made{false};
  std::unique_ptr<RedisStore> store;
  RedisOptions options = options_for(server);
  options.on_event = [&](const RedisEvent& event) {
    eventually([&] { return is_made.load(); });
    if (destroyed) ++late;
    if (event.kind != kind || destroyed) return;
    store.reset();
    destroyed = true;
  };
  store = make_redis_store(options);
  const TokenBucket bucket(*store, "api", quota);
  const Step step = bucket.acquire_step("a");
  Asked asked;
  store->execute(Plan(step).within(20s), asked.completion());
  is_made = true;
  REQUIRE(eventually([&] { return destroyed.load(); }));
  CHECK(asked.wait().answers == 1);
  CHECK(late == 0);
}

TEST_CASE("of several causes of a loss the first is told, and once", "[fake][reason]") {
  Events events;
  Crowd crowd(2);
  const Rig rig(
      [](Peer& peer, int number) {
        if (number > 0) return peer.wait_for_close();
        if (peer.read_call() && peer.read_call()) peer.send("-READONLY no\r\n");  // and closes
      },
      [&](RedisOptions& options) { options.on_event = events.listener(); });
  rig.ask_all(crowd, 20s);
  CHECK(eventually([&] { return events.count(Kind::lost, RedisStep::serve) == 1; }));
  CHECK(events.count(Kind::lost, RedisStep::serve, "READONLY no") == 1);
}

TEST_CASE("a journal that was stopped while it tells an event tells no other", "[reason]") {
  RedisOptions options;
  redis_detail::Journal* told = nullptr;
  int events = 0;
  options.on_event = [&](const RedisEvent&) {
    ++events;
    told->stop();
  };
  redis_detail::Journal journal(options);
  told = &journal;
  journal.note_failure(RedisStep::connect, "a", "first", Errc::not_connected);
  journal.note_failure(RedisStep::connect, "b", "second", Errc::not_connected);
  journal.tell();
  CHECK(events == 1);
}

TEST_CASE("the reasons of an outage are not those of the next one", "[reason]") {
  const RedisOptions options;
  redis_detail::Journal journal(options);
  const auto says = [&](Errc code, std::string_view part) {
    const auto reason = journal.reason_of(code);
    return reason != nullptr && has(*reason, part);
  };
  journal.note_attempt(RedisStep::connect, "a:1");
  journal.note_failure(RedisStep::login, "a:1", "NOAUTH no.", Errc::no_auth);
  journal.note_failure(RedisStep::connect, "a:1", "refused", Errc::not_connected);
  journal.note_loss("a:1", "READONLY no", Errc::read_only);
  CHECK(says(Errc::no_auth, "NOAUTH no"));
  CHECK_FALSE(says(Errc::no_auth, "NOAUTH no."));  // the words of the error follow
  CHECK(says(Errc::not_connected, "refused"));
  CHECK(says(Errc::read_only, "READONLY"));
  journal.note_connection("a:1");
  CHECK(journal.reason_of(Errc::no_auth) == nullptr);
  CHECK(journal.reason_of(Errc::not_connected) == nullptr);
  CHECK(says(Errc::read_only, "READONLY"));  // a call in a pause may still fail with it
  journal.note_decision();
  CHECK(journal.reason_of(Errc::read_only) == nullptr);
  journal.note_attempt(RedisStep::connect, "b:1");
  CHECK(says(Errc::not_connected, "connect to b:1: no answer yet"));
  journal.note_loss("b:1", "eof", Errc::not_connected);
  CHECK(says(Errc::not_connected, "connection to b:1: eof"));
}
