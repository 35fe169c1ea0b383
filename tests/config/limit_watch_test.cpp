// Files of limits that change while they are watched.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sluice/config/limit_file.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

/// A file of its own, and what a watch of it has told.
struct Watched {
  explicit Watched(const std::string& text) { write(text); }
  ~Watched() { std::filesystem::remove(path); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  /// Files may be written within one tick of their time of change, so that each gets one of its
  /// own.
  void write(const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    std::filesystem::last_write_time(path, std::filesystem::file_time_type{} + ++written * 1s);
  }
  bool look_twice() {
    const bool first = watch.poke();
    return watch.poke() || first;
  }

  int written = 0;
  std::string path = (std::filesystem::temp_directory_path() /
                      ("sluice-limits-" + std::to_string(std::random_device{}()) + ".toml"))
                         .string();
  VirtualClock clock;
  std::vector<config::FileChange> told;
  config::LimitWatch watch{path, clock,
                           [this](const config::FileChange& change) { told.push_back(change); }};
  std::shared_ptr<QuotaTable> api = std::make_shared<QuotaTable>(LimitList(Quota::per_second(10)));
  std::shared_ptr<LimitTable<Word>> jobs = std::make_shared<LimitTable<Word>>(LimitList(5));
};

constexpr const char* first = "[api]\neveryone = \"10/s\"\n[jobs]\neveryone = 5\n";

}  // namespace

TEST_CASE("a watch replaces its tables when the file has changed and is at rest", "[config]") {
  Watched w(first);
  w.watch.keep("api", w.api);
  w.watch.keep("jobs", w.jobs);
  CHECK_FALSE(w.look_twice());  // the file says what the tables have
  CHECK(w.told.empty());
  w.write("[api]\neveryone = \"20/s\"\n[jobs]\neveryone = 5\nkeys.a = 9\n");
  CHECK_FALSE(w.watch.poke());  // it may still be written
  CHECK(w.api->limit_of("a") == Quota::per_second(10));
  CHECK(w.watch.poke());
  CHECK(w.api->limit_of("a") == Quota::per_second(20));
  CHECK(w.jobs->limit_of("a") == 9);
  REQUIRE(w.told.size() == 1);
  CHECK(w.told[0].error.empty());
  CHECK(w.told[0].changes ==
        Lines{"api: everyone: 10/s -> 20/s", "jobs: key \"a\": as everyone -> 9"});
  CHECK_FALSE(w.look_twice());
  CHECK(w.told.size() == 1);
  --w.written;  // within the same tick
  w.write("[api]\neveryone = \"20/s\"\n[jobs]\neveryone = 5\nkeys.a = 19\n");
  CHECK(w.look_twice());
  CHECK(w.jobs->limit_of("a") == 19);
}

TEST_CASE("a file that is wrong in one table changes none, and is told once", "[config]") {
  Watched w(first);
  w.watch.keep("api", w.api);
  w.watch.keep("jobs", w.jobs);
  w.write("[api]\neveryone = \"20/s\"\n[jobs]\neveryone = \"many\"\n");
  CHECK_FALSE(w.look_twice());
  CHECK_FALSE(w.look_twice());
  REQUIRE(w.told.size() == 1);
  CHECK(w.told[0].error == w.path +
                               ":4: jobs.everyone: expected a whole number, \"never\" or "
                               "\"unlimited\", got string");
  CHECK(w.told[0].changes.empty());
  CHECK(w.api->limit_of("a") == Quota::per_second(10));
  w.write("[api]\neveryone = \"20/s\"\n[jobs]\neveryone = 6\n");
  CHECK(w.look_twice());
  CHECK(w.jobs->limit_of("a") == 6);
}

TEST_CASE("a table that the file counts in another unit or in other spans, or lacks, changes none",
          "[config]") {
  Watched w(first);
  const auto partner =
      std::make_shared<LimitTable<WindowLimits>>(LimitList(WindowLimits{{25, 5s}}));
  const auto daily = std::make_shared<QuotaTable>(LimitList(Quota::per_day(1000), 24h));
  w.watch.keep("api", w.api);
  w.watch.keep("jobs", w.jobs);
  const std::string jobs = "[jobs]\neveryone = 6\n";
  const auto told_of = [&](const std::string& text) {
    w.told.clear();
    w.write(text);
    CHECK_FALSE(w.look_twice());
    REQUIRE(w.told.size() == 1);
    return w.told[0].error;
  };
  CHECK(told_of(jobs + "[api]\neveryone = \"20/h\"\nunit = \"1h\"\n") ==
        w.path +
            ":5: api.unit: the new list of a table must have the same unit: it has 20/h for "
            "everyone, the table 10/s");
  CHECK(told_of("[api]\neveryone = \"20/s\"\n") == w.path + ":1: jobs: unknown; expected api");
  CHECK(w.jobs->limit_of("a") == 5);
  CHECK(w.api->limit_of("a") == Quota::per_second(10));

  w.watch.keep("partner", partner);
  w.watch.keep("daily", daily);
  CHECK(told_of(std::string(first) + "[partner]\neveryone = [\"25/6s\"]\n") ==
        w.path +
            ":6: partner.everyone: the new list of a table must have the same spans of windows: it "
            "has 25/6s for everyone, the table 25/5s");
  CHECK(told_of(std::string(first) +
                "[partner]\neveryone = [\"25/5s\"]\n[daily]\neveryone = \"1/s\"\n") ==
        w.path +
            ":8: daily.everyone: the new list of a table must have the same unit: it has 1/s for "
            "everyone, the table 1000/day");
}

TEST_CASE("a file that is half written, removed and written again loses nothing", "[config]") {
  Watched w(first);
  w.watch.keep("api", w.api);
  w.look_twice();
  w.write("[api]\neveryone = \"2");  // and more, between two looks
  CHECK_FALSE(w.watch.poke());
  w.write("[api]\neveryone = \"20/");
  CHECK_FALSE(w.watch.poke());
  CHECK(w.told.empty());
  w.write("[api]\neveryone = \"20/s\"\n");
  CHECK(w.look_twice());
  CHECK(w.api->limit_of("a") == Quota::per_second(20));

  std::filesystem::remove(w.path);
  CHECK_FALSE(w.look_twice());
  REQUIRE(w.told.size() == 2);
  CHECK(w.told[1].error == w.path + ": cannot be read");
  CHECK(w.api->limit_of("a") == Quota::per_second(20));
  w.write("[api]\neveryone = \"30/s\"\n");
  CHECK(w.look_twice());
  CHECK(w.api->limit_of("a") == Quota::per_second(30));
}

TEST_CASE("a file that is not there, or may not be read, is told once, and read when it can be",
          "[config]") {
  const bool is_there = GENERATE(false, true);
  CAPTURE(is_there);
  Watched w("[api]\neveryone = \"20/s\"\n");
  w.watch.keep("api", w.api);
  using std::filesystem::perms;
  const perms allowed = std::filesystem::status(w.path).permissions();
  const bool is_root = ::geteuid() == 0;  // who may read every file
  if (is_there) {
    std::filesystem::permissions(w.path, perms::none);
    if (is_root) REQUIRE(::seteuid(65'534) == 0);
  } else {
    std::filesystem::remove(w.path);
  }
  CHECK_FALSE(w.look_twice());
  CHECK_FALSE(w.look_twice());
  if (is_root) REQUIRE(::seteuid(0) == 0);
  REQUIRE(w.told.size() == 1);
  CHECK(w.told[0].error == w.path + ": cannot be read");
  if (is_there) {
    std::filesystem::permissions(w.path, allowed);
  } else {
    w.write("[api]\neveryone = \"20/s\"\n");
  }
  CHECK(w.look_twice());
}

TEST_CASE("a file of the same size and time is read, whether it is another one or overwritten",
          "[config]") {
  const std::string how = GENERATE(as<std::string>(), "renamed", "linked", "overwritten");
  CAPTURE(how);
  Watched w(first);
  w.watch.keep("api", w.api);
  const Watched next("[api]\neveryone = \"20/s\"\n[jobs]\neveryone = 5\n");
  const std::string link = w.path + ".link";
  const auto inode_changed = [&] {
    struct stat file {};
    REQUIRE(::stat(w.path.c_str(), &file) == 0);
    return std::pair(file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
  };
  if (how == "linked") {
    std::filesystem::rename(w.path, link);
    std::filesystem::create_symlink(link, w.path);
  }
  CHECK_FALSE(w.look_twice());
  const auto size = std::filesystem::file_size(w.path);
  const auto time = std::filesystem::last_write_time(w.path);
  REQUIRE(std::filesystem::file_size(next.path) == size);
  REQUIRE(std::filesystem::last_write_time(next.path) == time);
  if (how == "overwritten") {
    const auto before = inode_changed();
    while (inode_changed() == before) {  // for less than a tick of the system
      w.write("[api]\neveryone = \"20/s\"\n[jobs]\neveryone = 5\n");
      std::filesystem::last_write_time(w.path, time);
    }
  } else if (how == "linked") {
    std::filesystem::create_symlink(next.path, link + ".new");
    std::filesystem::rename(link + ".new", w.path);
  } else {
    std::filesystem::rename(next.path, w.path);
  }
  CHECK(w.look_twice());
  CHECK(w.api->limit_of("a") == Quota::per_second(20));
  std::filesystem::remove(link);
}

TEST_CASE("a pipe in place of a file is told, and not opened", "[config]") {
  Watched w(first);
  w.watch.keep("api", w.api);
  std::filesystem::remove(w.path);
  REQUIRE(::mkfifo(w.path.c_str(), 0600) == 0);
  CHECK_FALSE(w.look_twice());
  REQUIRE(w.told.size() == 1);
  CHECK(w.told[0].error == w.path + ": is no regular file");
}

TEST_CASE("a watch looks on a thread of its own each period, whatever `told` has thrown",
          "[config]") {
  Watched w(first);
  int told = 0;
  const auto throws = [&told](const config::FileChange&) { throw ++told; };
  config::LimitWatch watch(w.path, w.clock, throws, {.period = 10s});
  watch.keep("api", w.api);
  const VirtualClock::AutoAdvance moving(w.clock);
  const auto pass = [&w](Span span) {
    ManualResetEvent nobody;
    w.clock.wait_until(w.clock.now() + span, nobody);
  };
  watch.start();
  watch.start();
  pass(15s);
  for (const int rate : {20, 30}) {  // in files of one size
    const Quota before = w.api->limit_of("a");
    w.write("[api]\neveryone = \"" + std::to_string(rate) + "/s\"\n");
    pass(10s);
    CHECK(w.api->limit_of("a") == before);  // it was seen once
    pass(10s);
    CHECK(w.api->limit_of("a") == Quota::per_second(rate));
  }
  watch.stop();
  CHECK(told == 2);
}

TEST_CASE("a watch rejects a period that is too short, no table, and one name twice", "[config]") {
  Watched w(first);
  CHECK_THROWS_AS(config::LimitWatch("x", w.clock, nullptr, {.period = 999us}),
                  std::invalid_argument);
  CHECK_THROWS_AS(w.watch.keep("api", std::shared_ptr<QuotaTable>()), std::invalid_argument);
  w.watch.keep("api", w.api);
  CHECK_THROWS_AS(w.watch.keep("api", w.jobs), std::invalid_argument);
}

}  // namespace sluice::test
