// The pipeline against a model of a server, driven at random: calls, partial writes, partial
// replies in order, lost scripts, refusals that pass, timeouts, cancellations, lost connections.
// Threading: single-threaded.
#include <algorithm>
#include <set>

#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Executes commands in order; every execution happens at an instant of its own.
struct ModelServer {
  explicit ModelServer(Random& draws) : random(draws) {}

  Random& random;
  std::set<std::string> scripts;
  bool has_library = false;
  std::map<std::uint64_t, Word> executed_at;
  std::size_t double_executions = 0;
  Word at = 0;

  struct Said {
    bool is_error;
    std::string text;
  };

  Said run(const Command& command) {
    if (random.one_in(20)) {
      scripts.clear();
      has_library = false;
    }
    if (command[0] == "FUNCTION") {
      if (random.one_in(40)) return {true, random.one_in(2) ? "NOPERM no" : "OOM no"};
      if (std::exchange(has_library, true)) return {true, "ERR Library 'it' already exists"};
      return {false, redis_detail::library().name};
    }
    if (command[0] == "FCALL" && !has_library) return {true, "ERR Function not found"};
    if (command[0] == "SCRIPT") {
      if (random.one_in(10)) return {true, "NOPERM no"};
      scripts.insert(redis_detail::sha1_of(command[2]));
      return {false, redis_detail::sha1_of(command[2])};
    }
    if (command[0] == "EVALSHA" && !scripts.contains(command[1])) return {true, "NOSCRIPT lost"};
    if (random.one_in(20)) return {true, random.one_in(2) ? "LOADING wait" : "READONLY no"};
    const bool breaks_off = random.one_in(50);
    ++at;
    double_executions += executed_at.emplace(nonce_of(command), at).second ? 0U : 1U;
    std::string bytes = payload(nonce_of(command), at, {});
    for (std::size_t i = 0; i < steps_of(command); ++i) {
      bytes += payload(0, 0, {{Verdict::allowed, 1, 0, 1}}).substr(16);
    }
    if (breaks_off) return {true, "ERR after it was executed"};
    return {false, bytes};
  }
};

class Run {
 public:
  Run(Random& random, RedisScripts scripts)
      : random_(random), world_(scripts), server_(random), calls_(200) {}

  void step() {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        if (made_ < calls_.size()) submit();
        break;
      case 3:
      case 4:
        write();
        break;
      case 5:
      case 6:
      case 7:
      case 8:
        for (auto n = random_.below(6); n > 0 && hear_one(); --n) continue;
        break;
      case 9:
        world_.now += Span{random_.between(0, 2'000) * (random_.one_in(10) ? 10 : 1)};
        world_.pipeline.expire(world_.now, Errc::timed_out);
        break;
      case 10:
        if (!open_.empty() && random_.one_in(2)) cancel_one();
        break;
      default:
        if (random_.one_in(10)) disconnect();
    }
    world_.pipeline.ended().clear();
  }

  void end() {
    world_.pipeline.abandon(Errc::shut_down);
    world_.pipeline.ended().clear();
    CHECK_FALSE(world_.pipeline.has_sent());
    CHECK_FALSE(world_.pipeline.has_unsent());
    CHECK(server_.double_executions == 0);
    std::size_t wrong = 0;
    for (std::uint64_t nonce = 0; nonce < made_; ++nonce) wrong += is_right(nonce) ? 0U : 1U;
    CHECK(wrong == 0);
  }

  std::set<std::string> ends;  // what calls came to
  std::size_t torn = 0;        // writes that ended within a request

 private:
  void submit() {
    const std::size_t steps = random_.one_in(3) ? 2 : 1;
    const Time deadline =
        random_.one_in(3)
            ? Time::max()
            : world_.now + Span{random_.between(0, random_.one_in(4) ? 50'000 : 5'000)};
    CallPtr call = make_call(calls_[made_], made_, deadline, steps);
    open_[made_] = call.get();
    world_.pipeline.submit(std::move(call));
    ++made_;
  }

  /// A socket that takes all, or a part at whose end a request may be torn.
  void write() {
    if (written_ == out_.size()) {
      out_.clear();
      written_ = 0;
      world_.pipeline.flush(out_, world_.now);
    }
    const std::size_t left = out_.size() - written_;
    const std::size_t takes = random_.one_in(2) ? left : random_.below(left + 1);
    wire_.append(out_, written_, takes);
    note_touched(out_.substr(written_), takes);
    world_.pipeline.took(out_, takes);
    written_ += takes;
    if (takes < left) torn += written_ < out_.size() ? 1U : 0U;
  }

  /// Of which calls the socket took a byte. A rest is that of a call that is known.
  void note_touched(std::string bytes, std::size_t takes) {
    const std::size_t all = bytes.size();
    if (written_ > 0) return;
    while (all - bytes.size() < takes) {
      const auto command = take_command(bytes);
      if (is_call(*command)) touched_.insert(nonce_of(*command));
    }
  }

  bool hear_one() {
    const auto command = take_command(wire_);
    if (!command) return false;
    const auto said = server_.run(*command);
    const Heard heard =
        said.is_error ? world_.hear_error(said.text) : world_.pipeline.hear_string(said.text);
    REQUIRE(heard != Heard::nonsense);
    return true;
  }

  void cancel_one() {
    auto it = open_.begin();
    std::advance(it, random_.below(open_.size()));
    // An ended call is gone; its pointer must not be used.
    if (calls_[it->first].answers == 0) {
      it->second->cancelled = true;
      world_.pipeline.cancel_marked();
    }
    open_.erase(it);
  }

  /// Whatever is on the wire may or may not reach the server.
  void disconnect() {
    for (auto n = random_.below(20); n > 0; --n) {
      if (const auto command = take_command(wire_)) server_.run(*command);
    }
    wire_.clear();
    out_.clear();
    written_ = 0;
    world_.pipeline.disconnect(random_.one_in(2) ? Errc::unknown : Errc::protocol_error);
  }

  bool is_right(std::uint64_t nonce) {
    const Asked& call = calls_[nonce];
    const auto executed = server_.executed_at.find(nonce);
    if (call.answers != 1) return false;
    ends.insert(call.error ? call.error.message() : "decided");
    if (call.error == Failure::unknown) return touched_.contains(nonce);
    if (call.error) return executed == server_.executed_at.end();
    return executed != server_.executed_at.end() && call.decision.at == to_time(executed->second);
  }

  Random& random_;
  World world_;
  ModelServer server_;
  Crowd calls_;
  std::size_t made_ = 0;
  std::map<std::uint64_t, Call*> open_;
  std::string out_;
  std::size_t written_ = 0;  // of out_
  std::string wire_;
  std::set<std::uint64_t> touched_;
};

}  // namespace

TEST_CASE("whatever happens, each call ends once, truly, and with its own reply", "[pipeline]") {
  Random random("whatever happens, each call ends once, truly, and with its own reply");
  CAPTURE(random.repeat());
  const auto scripts = GENERATE(RedisScripts::eval, RedisScripts::functions);
  // The runs mean something only if all of this happened.
  std::vector<std::string> wanted{"decided"};
  for (const Errc code : {Errc::unknown, Errc::protocol_error, Errc::timed_out, Errc::cancelled,
                          Errc::loading, Errc::read_only, Errc::server_error}) {
    wanted.push_back(make_error_code(code).message());
  }
  if (scripts == RedisScripts::functions) {
    wanted.push_back(make_error_code(Errc::no_function).message());
    wanted.push_back(make_error_code(Errc::out_of_memory).message());
  }
  std::set<std::string> seen;
  std::size_t torn = 0;
  const auto has_seen = [&](const std::string& name) { return seen.contains(name); };
  const std::size_t least = scaled(300, 30);
  for (std::size_t i = 0; i < least || (i < 3'000 && !std::ranges::all_of(wanted, has_seen)); ++i) {
    Run run(random, scripts);
    for (int step = 0; step < 1'000; ++step) run.step();
    run.end();
    seen.merge(run.ends);
    torn += run.torn;
  }
  CHECK(torn > 0);
  for (const std::string& name : wanted) {
    INFO(name);
    CHECK(has_seen(name));
  }
}
