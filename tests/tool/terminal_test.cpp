// What reaches a terminal: widths, colours, and no byte that a stranger chose. On a real server.
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// Runs a line of the shell on a terminal of its own, with this typed.
Ran on_terminal(const std::string& url, const std::string& line, const std::string& typed = "") {
  Ran ran = shell(url, "unset COLUMNS NO_COLOR; export LINE='" + line + "'; printf '" + typed +
                           "' | script -qec 'eval \"$LINE\"' /dev/null 2>&1");
  std::erase(ran.output, '\r');
  return ran;
}

void check_width(const std::string& text, std::size_t width) {
  std::istringstream stream(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(stream, line);) {
    INFO(line);
    CHECK(line.size() <= width);
    widest = std::max(widest, line.size());
  }
  INFO(text);
  CHECK(widest > 0);
}

TEST_CASE("every command prints within 40 columns", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const std::string tag = "somebody-whose-name-is-wider-than-a-terminal";
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  const ConcurrencyLimiter jobs(*site.store, "jobs", 5);
  REQUIRE(bucket.try_acquire(tag, 5).allowed);
  Lease lease = jobs.try_acquire(tag);
  const std::string key = "'{" + tag + "}:api:5/day'";
  const std::string leases = "'{" + tag + "}:jobs'";
  const std::string gate = "'{adwords}:account=" + tag + "'";
  struct Line {
    std::string words;
    int code;
  };
  for (const auto& [words, code] : std::vector<Line>{
           {"peek " + key + " --limit 5", 1},
           {"watch " + leases + " --times 2 --interval 100ms", 0},
           {"watch '{nobody-whose-name-is-wider-than-a-terminal}:b' --times 1", 0},
           {"block " + leases + " --for 10min --yes", 0},
           {"close " + gate + " --for 10min --yes", 0},
           {"open " + gate + " --yes", 0},
           {"reset " + leases + " --yes", 0},
           {"reset " + key, 2},  // nobody can be asked
           {"block " + key + " --for 1s --yes", 2},
           {"peek " + key + " --quota 6/day", 2},
           {"show '{nobody-whose-name-is-wider-than-a-terminal}:b'", 2},
           {"close " + key + " --for 1s --yes", 2},
           {"block " + leases, 2},
           {"block " + leases + " --for 'no length of time that anybody understands'", 2}}) {
    INFO(words);
    const Ran ran = shell(site.url, "COLUMNS=40 \"$SLUICE\" " + words + " 2>&1 </dev/null");
    CHECK(ran.code == code);
    check_width(ran.output, 40);
  }
  const Ran gone = shell("redis://127.0.0.1:1", "COLUMNS=40 \"$SLUICE\" keys 2>&1");
  CHECK(gone.code == 3);
  check_width(gone.output, 40);
}

TEST_CASE("a terminal is asked within its width", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const TokenBucket bucket(*site.store, "api", Quota::per_day(5));
  const std::string tag = "somebody-whose-name-is-wider-than-a-terminal";
  REQUIRE(bucket.try_acquire(tag, 5).allowed);
  const Ran ran =
      on_terminal(site.url, "stty cols 40; \"$SLUICE\" reset \"{" + tag + "}:api:5/day\"", "no\\n");
  INFO(ran.output);
  CHECK_THAT(ran.output, contains_text("a token bucket,") && contains_text("yes? ") &&
                             contains_text("nothing was changed"));
  check_width(ran.output, 40);
}

TEST_CASE("the width is that of the terminal, or COLUMNS", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  const std::string tag(60, 'x');
  REQUIRE(TokenBucket(*site.store, "api", Quota::per_day(5)).try_acquire(tag).allowed);
  const std::string key = "{" + tag + "}:api:5/day";
  const auto is_whole = [&](const Ran& ran) { return ran.output.find(key) != std::string::npos; };
  const std::string show = "\"$SLUICE\" show \"" + key + "\"";
  CHECK(is_whole(on_terminal(site.url, "stty cols 100; " + show)));
  const Ran narrow = on_terminal(site.url, "stty cols 30; " + show);
  CHECK_FALSE(is_whole(narrow));
  check_width(narrow.output, 30);
  CHECK(is_whole(on_terminal(site.url, "stty cols 30; COLUMNS=100 " + show)));
  CHECK(is_whole(shell(site.url, "unset COLUMNS; \"$SLUICE\" show '" + key + "'")));
}

TEST_CASE("colour is for terminals alone, without NO_COLOR and JSON", "[redis]") {
  if (redis_left_out()) return;
  Site site;
  REQUIRE(TokenBucket(*site.store, "api", Quota::per_day(5)).try_acquire("a").allowed);
  const auto is_coloured = [&](const std::string& line) {
    const Ran ran = on_terminal(site.url, line);
    INFO(ran.output);
    CHECK_THAT(ran.output, contains_text("{a}:api:5/day"));
    return ran.output.find('\x1b') != std::string::npos;
  };
  CHECK(is_coloured("\"$SLUICE\" keys"));
  CHECK(is_coloured("NO_COLOR= \"$SLUICE\" keys"));
  CHECK_FALSE(is_coloured("NO_COLOR=1 \"$SLUICE\" keys"));
  CHECK_FALSE(is_coloured("\"$SLUICE\" keys | cat"));
  CHECK_FALSE(is_coloured("\"$SLUICE\" keys --json"));
}

TEST_CASE("bytes of a key that a terminal obeys are printed as digits", "[redis]") {
  if (redis_left_out()) return;
  RedisServer server;
  RedisOptions options = options_of(server);
  options.key_prefix = "\x1b[31m\x07:";
  const auto store = make_redis_store(std::move(options));
  REQUIRE(TokenBucket(*store, "api", Quota::per_day(5)).try_acquire("a", 2).allowed);
  const std::string raw = "\x1b[31m\x07:{a}:api:5/day";
  const std::string key = "'" + raw + "'";
  for (const std::string& words :
       {std::string("keys"), std::string("top"), "show " + key, "peek " + key + " --limit 5",
        "block --yes --for 1s --limit 5 " + key, "reset --yes " + key}) {
    INFO(words);
    const std::string before = words.substr(0, words.find(' ')) + " --json" +
                               words.substr(std::min(words.find(' '), words.size()));
    const bool changes = words.find("--yes") != std::string::npos;
    if (!changes) {
      CHECK(json_lines(sluice_tool(url_of(server), before).output).at(0)["key"] == raw);
    }
    const Ran ran = sluice_tool(url_of(server), words);
    CHECK(ran.code == 0);
    CHECK_THAT(ran.output, contains_text("\\x1b[31m\\x07:{a}:api:5/day"));
    CHECK(ran.output.find_first_of("\x1b\x07") == std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::test
