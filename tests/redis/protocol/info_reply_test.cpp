// What is read of the text of INFO. Threading: single-threaded.
#include "backends/redis/protocol/info_reply.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice::test;
using sluice::redis_detail::InfoReply;
using sluice::redis_detail::read_info;

namespace {

const std::string whole =
    "# Server\r\nredis_version:7.2.4\r\nredis_mode:standalone\r\n\r\n"
    "# Memory\r\nused_memory:1012345\r\nmaxmemory_policy:noeviction\r\n\r\n"
    "# Stats\r\nevicted_keys:42\r\nevicted_clients:7\r\n\r\n"
    "# Replication\r\nrole:master\r\nmaster_replid:8c5\r\n";

}  // namespace

TEST_CASE("the text of INFO states version, role, policy and evicted keys", "[redis][info]") {
  const InfoReply reply = read_info(whole);
  CHECK(reply.version == "7.2.4");
  CHECK(reply.role == "master");
  CHECK(reply.maxmemory_policy == "noeviction");
  CHECK(reply.evicted_keys == 42U);
}

TEST_CASE("what INFO does not state is empty", "[redis][info]") {
  for (const char* text :
       {"", "\r\n", ":", "# role:master", "xrole:master\r\nrole_x:master\nevicted_keys\r\n",
        "evicted_keys:\r\nrole:\r\n", "evicted_keys:-1\r\n", "evicted_keys:4 2\r\n",
        "evicted_keys:18446744073709551616\r\n", "x:role:master\r\n"}) {
    CAPTURE(text);
    const InfoReply reply = read_info(text);
    CHECK(reply.version.empty());
    CHECK(reply.role.empty());
    CHECK(reply.maxmemory_policy.empty());
    CHECK_FALSE(reply.evicted_keys);
  }
}

TEST_CASE("a value may contain a colon", "[redis][info]") {
  CHECK(read_info("redis_version:7:x\r\n").version == "7:x");
}

TEST_CASE("the first of two equal fields counts, and the last line may have no end",
          "[redis][info]") {
  const InfoReply reply = read_info(
      "role:master\r\nrole:slave\nevicted_keys:1\nevicted_keys:2\nmaxmemory_policy:allkeys-lru");
  CHECK(reply.role == "master");
  CHECK(reply.evicted_keys == 1U);
  CHECK(reply.maxmemory_policy == "allkeys-lru");
}

TEST_CASE("a text of INFO that was cut or changed is read within its bytes", "[redis][info]") {
  Random random("a text of INFO that was cut or changed is read within its bytes");
  CAPTURE(random.repeat());
  const auto is_within = [](std::string_view part, const std::string& text) {
    return part.empty() ||
           (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
  };
  for (std::size_t round = 0; round < scaled(5'000, 500); ++round) {
    const auto last = static_cast<std::int64_t>(whole.size());
    std::string text = whole.substr(0, static_cast<std::size_t>(random.between(0, last)));
    for (auto changes = random.between(0, 5); changes > 0 && !text.empty(); --changes) {
      const auto place = random.between(0, static_cast<std::int64_t>(text.size()) - 1);
      text[static_cast<std::size_t>(place)] = "\r\n:#0\0r\xff"[random.between(0, 7)];
    }
    const InfoReply reply = read_info(text);
    for (const std::string_view part : {reply.version, reply.role, reply.maxmemory_policy}) {
      CHECK(is_within(part, text));
      CHECK(part.find_first_of("\r\n") == std::string_view::npos);
    }
  }
}
