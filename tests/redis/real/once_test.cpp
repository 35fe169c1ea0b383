// Request ids and alternatives on a real server: a plan that is asked again is charged once, and
// one alternative is charged in one round trip. Threading: the test's thread.
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "src/testing/generators.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

using testing::detail::Configuration;
using testing::detail::Generator;

constexpr RequestId id{7, 8};
constexpr Word limit = 100;

/// The record's key for steps with the tag "t".
std::string record_key() {
  const auto name = record_name(id);
  return render(Key{"t", {name.data(), name.size()}});
}

/// Two steps for each kind that spends, fixed and variable states, under one tag: takes of a unit
/// of 100.
class EveryKind {
 public:
  EveryKind() {
    add("a");
    add("b");
  }

  [[nodiscard]] std::vector<Step> takes() const {
    return make([](const Generator& generator) { return generator.spender->acquire; });
  }

  /// How much of each has been spent.
  [[nodiscard]] std::vector<Word> spent(Store& store) const {
    std::vector<Word> spent;
    for (const Step& look :
         make([](const Generator& generator) { return generator.spender->peek; })) {
      spent.push_back(limit - decide(store, Plan(look).within(20s)).remaining);
    }
    return spent;
  }

  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  void add(const std::string& prefix) {
    for (const Generator& generator : testing::detail::generators()) {
      if (generator.spender == nullptr) continue;
      generators_.push_back(&generator);
      configs_.push_back(generator.spender->frozen(limit));
      generator.spender->ask(configs_.back().args, 1);
      names_.push_back(prefix + std::to_string(static_cast<int>(generator.kind)));
    }
  }

  [[nodiscard]] std::vector<Step> make(const auto& row) const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      steps.push_back({row(*generators_[i]), Key{"t", names_[i]}, configs_[i].args, nullptr,
                       configs_[i].table});
    }
    return steps;
  }

  std::vector<const Generator*> generators_;
  std::vector<Configuration> configs_;
  std::vector<std::string> names_;
};

FirstOf accounts(const TokenBucket& keys, std::initializer_list<const char*> names) {
  std::vector<std::vector<Claim>> alternatives;
  for (const char* name : names) alternatives.push_back({{keys, name}});
  return first_of(std::move(alternatives));
}

}  // namespace

TEST_CASE_METHOD(SharedStore, "an id survives lost scripts, and lives for ten minutes",
                 "[redis][once]") {
  const EveryKind kinds;
  const auto steps = kinds.takes();
  const Plan plan = Plan(steps).idempotent(id);
  const Decision first = decide(*store, plan);
  for (int i = 0; i < 3; ++i) {
    admin({"SCRIPT", "FLUSH"});
    CHECK(decide(*store, plan) == first);
  }
  CHECK(kinds.spent(*store) == std::vector<Word>(kinds.size(), 1));
  const Word ttl = admin({"PTTL", record_key()}).integer;
  CHECK(ttl > id_kept_for / 1ms + 60'000);  // also for a clock that is set back
  CHECK(ttl <= id_kept_for / 1ms + 61'000);
}

TEST_CASE_METHOD(SharedStore,
                 "what is no record under an id's key is a typed error, and nothing is charged",
                 "[redis][once]") {
  const EveryKind kinds;
  const auto steps = kinds.takes();
  const Plan plan = Plan(steps).idempotent(id);
  CHECK(decide(*store, plan).allowed);
  const std::string record = admin({"GET", record_key()}).text;
  const auto with = [&](std::size_t at, char byte) {
    std::string changed = record;
    changed.at(at) = byte;
    return changed;
  };
  const std::vector<std::pair<std::string, Errc>> wrong{
      {"", Errc::wrong_type},
      {"x", Errc::wrong_type},
      {record.substr(0, record.size() - 1), Errc::wrong_type},
      {with(0, 1), Errc::wrong_kind},
      {with(0, 40), Errc::wrong_type},
      {record.substr(0, record.size() - 8), Errc::corrupt_state},
      {record.substr(0, 1), Errc::corrupt_state},
      {with(0, 11), Errc::wrong_kind},  // of an older layout
      {with(9, static_cast<char>(record.at(9) ^ 1)), Errc::id_reused},
      {with(8, 127), Errc::corrupt_state},   // the instant
      {with(17, 0), Errc::corrupt_state},    // the first status
      {with(17, 2), Errc::corrupt_state},    //
      {with(32, -1), Errc::corrupt_state},   // what remains
      {with(40, 1), Errc::corrupt_state},    // a hint
      {with(48, -128), Errc::corrupt_state}  // another
  };
  for (const auto& [bytes, code] : wrong) {
    CAPTURE(bytes);
    admin({"SET", record_key(), bytes});
    std::error_code error;
    CHECK_FALSE(decide(*store, plan, error).allowed);
    CHECK(error == code);
    CHECK(admin({"GET", record_key()}).text == bytes);
  }
  // Past its time it is nobody's, also while the key is still there.
  std::string old = record;
  Word at = 0;
  for (std::size_t i = 8; i > 0; --i) at = at << 8 | static_cast<unsigned char>(record[i]);
  at -= id_kept_for.count();
  for (std::size_t i = 1; i <= 8; ++i, at >>= 8) old[i] = static_cast<char>(at & 255);
  admin({"SET", record_key(), old, "PX", "1000"});
  const TokenBucket other(*store, "other", Quota::per_hour(1).burst(1));
  CHECK(decide(*store, Plan(other.acquire_step("t")).idempotent(id)).allowed);

  admin({"DEL", record_key()});
  admin({"LPUSH", record_key(), "x"});
  std::error_code error;
  static_cast<void>(decide(*store, plan, error));
  CHECK(error == Errc::wrong_type);
  CHECK(store->stats().protocol_errors == 0);
  CHECK(kinds.spent(*store) == std::vector<Word>(kinds.size(), 1));
}

TEST_CASE_METHOD(SharedStore,
                 "alternatives of several tags are decided in one round trip, and one is charged",
                 "[redis][first_of]") {
  const TokenBucket keys(*store, "keys", Quota::per(1, 1h).burst(2));
  const auto either = accounts(keys, {"a", "b", "c"});
  std::vector<std::size_t> taken;
  for (int i = 0; i < 6; ++i) {
    if (i == 3) CHECK(admin({"SCRIPT", "FLUSH"}).text == "OK");
    const Grants granted = acquire(either, 0s);
    REQUIRE(granted);
    taken.push_back(granted.alternative());
  }
  CHECK(taken == std::vector<std::size_t>{0, 0, 1, 1, 2, 2});
  const Grants refused = acquire(either, 0s);
  CHECK_FALSE(refused);
  CHECK(refused.decision().retry_after > 59min);
  CHECK(store->stats().decided == 7 * 3);
}
