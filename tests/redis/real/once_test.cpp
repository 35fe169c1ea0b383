// Request ids and alternatives on a real server: a plan that is asked again is charged once, and
// one alternative is charged in one round trip. Threading: the test's thread.
#include <array>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/redis/real/real.hpp"

using namespace sluice::test;
using namespace sluice;

namespace {

constexpr RequestId id{7, 8};

/// The record's key for steps with the tag "t".
std::string record_key() {
  const auto name = record_name(id);
  return render(Key{"t", {name.data(), name.size()}});
}

/// Plans of two limits of 100, one of a fixed state and one of a variable state.
struct Once : SharedStore {
  const TokenBucket bucket{*store, "bucket", Quota::per(1, 1h).burst(100)};
  const SlidingWindow windows{*store, "windows", {{100, 1h}}};
  const std::array<Step, 2> steps{bucket.acquire_step("t"), windows.acquire_step("t")};
  const Plan plan = Plan(steps).idempotent(id);

  [[nodiscard]] bool are_charged_once() const {
    return bucket.peek("t").remaining == 99 && windows.peek("t").remaining == 99;
  }
};

FirstOf accounts(const TokenBucket& keys, std::initializer_list<const char*> names) {
  std::vector<std::vector<Claim>> alternatives;
  for (const char* name : names) alternatives.push_back({{keys, name}});
  return first_of(std::move(alternatives));
}

}  // namespace

TEST_CASE_METHOD(Once, "an id survives lost scripts, and lives for ten minutes", "[redis][once]") {
  const Decision first = decide(*store, plan);
  for (int i = 0; i < 3; ++i) {
    admin({"SCRIPT", "FLUSH"});
    CHECK(decide(*store, plan) == first);
  }
  CHECK(are_charged_once());
  const Word ttl = admin({"PTTL", record_key()}).integer;
  CHECK(ttl > id_kept_for / 1ms + 60'000);  // also for a clock that is set back
  CHECK(ttl <= id_kept_for / 1ms + 61'000);
}

TEST_CASE_METHOD(Once,
                 "what is no record under an id's key is a typed error, and nothing is charged",
                 "[redis][once]") {
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
  CHECK(are_charged_once());
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
