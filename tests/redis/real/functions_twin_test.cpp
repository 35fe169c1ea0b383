// Functions and scripts are made of the same text: a real server with the test's clock answers the
// same requests with the same bytes, and keeps the same. Threading: single-threaded.
#include "sluice/virtual_clock.hpp"
#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/redis/real/real.hpp"
#include "tests/support/frozen_redis.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// A request of any rows, over states that several rows share, in both forms.
class Requests {
 public:
  struct Made {
    Command script;
    Command function;
    std::string_view text{};  // of the script
  };

  explicit Requests(Random& random) : random_(random) {
    for (const auto& generator : testing::detail::generators()) {
      for (int i = 0; i < 2; ++i) {
        slots_.push_back(
            {generator.kind, "k" + std::to_string(slots_.size()), generator.any(random)});
      }
    }
  }

  Made draw() {
    if (random_.one_in(30)) return spoil();
    std::vector<Step> steps;
    const bool both_taken = random_.one_in(20);
    const std::size_t first =
        both_taken ? 2 * random_.below(slots_.size() / 2) : random_.below(slots_.size());
    const std::size_t count = both_taken ? 2 : random_.one_in(3) ? 1 + random_.below(4) : 1;
    for (std::size_t i = 0; i < count; ++i)
      steps.push_back(draw_step(slots_.at((first + i) % slots_.size()), both_taken));
    std::optional<RequestId> id;
    if (random_.one_in(10)) id = random_.one_in(2) ? RequestId{1, 2} : RequestId::draw(random_);
    redis_detail::Request request;
    redis_detail::encode(request, steps, random_.next(), {}, id);
    std::string bytes;
    redis_detail::append_evalsha(bytes, request);
    redis_detail::append_fcall(bytes, request);
    asked_.insert(request.script->function);
    auto script = take_command(bytes);
    auto function = take_command(bytes);
    return {std::move(*script), std::move(*function), request.script->text};
  }

  /// How many functions were asked.
  [[nodiscard]] std::size_t asked() const { return asked_.size(); }

 private:
  struct Slot {
    StateKind kind;
    std::string name;
    testing::detail::Configuration config;
  };

  /// Something else under a key: of another type or kind, or with words that no rule writes.
  Made spoil() {
    const Slot& slot = slots_[random_.below(slots_.size())];
    const char kind =
        static_cast<char>(random_.one_in(2) ? slot.kind : StateKind::idempotency_record);
    const std::string state = kind + std::string(8 * random_.below(40), '\xff');
    const Command command{"SET", "{t}:" + slot.name, random_.one_in(4) ? "text" : state, "PX",
                          "1000"};
    return {command, command};
  }

  /// `takes`: the kind's first row.
  Step draw_step(Slot& slot, bool takes) {
    std::vector<const Operation*> rows;
    for (const Operation* row : operations()) {
      if (row->kind == slot.kind) rows.push_back(row);
    }
    const Operation& row = *rows[takes ? 0 : random_.below(rows.size())];
    if (random_.one_in(20)) slot.config = testing::detail::find_generator(slot.kind)->any(random_);
    Arguments args = slot.config.args;
    testing::detail::find_generator(slot.kind)->draw(random_, row, args);
    return {&row, Key{"t", slot.name}, args, nullptr, slot.config.table};
  }

  Random& random_;
  std::vector<Slot> slots_;
  std::set<std::string_view> asked_;
};

std::string ask(RedisClient& client, const Command& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  const RedisReply reply = client.command(views);
  return (reply.is_error() ? "-" : "+") + reply.text;
}

/// Every key, its value and how long it lives.
std::map<std::string, std::string> contents(RedisClient& client) {
  std::map<std::string, std::string> all;
  for (const RedisReply& key : client({"KEYS", "*"}).elements) {
    all[key.text] = client({"GET", key.text}).text + " " +
                    std::to_string(client({"PEXPIRETIME", key.text}).integer);
  }
  return all;
}

}  // namespace

TEST_CASE("functions answer and write what scripts do, byte for byte", "[redis][functions]") {
  if (redis_left_out()) return;
  Random random("functions answer and write what scripts do, byte for byte");
  CAPTURE(random.repeat());
  FrozenRedis& redis = FrozenRedis::instance();
  RedisClient client(redis.server().unix_socket());
  REQUIRE(client({"FUNCTION", "LOAD", redis_functions()}).text == redis_detail::library().name);
  struct Asked {
    Time at;
    Requests::Made request;
    std::string answer;
  };
  std::size_t asked = 0;
  std::size_t answered = 0;
  std::set<std::size_t> scripts;
  for (std::size_t round = scaled(10, 2); round > 0; --round) {
    Requests requests(random);
    std::vector<Asked> all;
    Time now = VirtualClock::default_start;
    redis.set_time(now);
    redis.flush();
    for (int i = 0; i < 2'000; ++i) {
      now += Span{random.one_in(3) ? random.between(0, 3'000'000) : random.between(0, 2'000)};
      redis.set_time(now);
      Asked next{now, requests.draw(), {}};
      next.answer = ask(client, next.request.script);
      if (next.answer.starts_with("-NOSCRIPT")) {
        client({"SCRIPT", "LOAD", next.request.text});
        next.answer = ask(client, next.request.script);
      }
      answered += next.answer.starts_with('+') ? 1U : 0U;
      all.push_back(std::move(next));
    }
    const auto kept = contents(client);
    CHECK(kept.size() > 10);
    redis.set_time(VirtualClock::default_start);
    redis.flush();
    for (const Asked& before : all) {
      redis.set_time(before.at);
      INFO(before.request.function.at(1));
      REQUIRE(ask(client, before.request.function) == before.answer);
    }
    CHECK(contents(client) == kept);
    asked += all.size();
    scripts.insert(requests.asked());
  }
  CHECK(answered == asked);
  CHECK(*scripts.rbegin() == operations().size() + 3);
}
