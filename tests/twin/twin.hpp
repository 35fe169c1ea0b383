// Drives kernels in C++ and scripts in a real server with the same requests, at times of the
// test's choosing, and compares everything: statuses, what remains, hints and the bytes of state.
// Threading: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/operation.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

/// How often each kind of answer and of situation came up, so that a test can require them all.
struct TwinCounts {
  std::size_t decisions = 0;
  std::size_t to_difference = 0;  // the first decision that differed, counted from 1
  std::size_t steps = 0;
  std::size_t plans = 0;  // of two steps or more
  std::size_t allowed = 0;
  std::size_t refused = 0;
  std::size_t failed = 0;
  std::size_t stamp_ahead = 0;      // a stamp ahead of the clock, within the bound
  std::size_t stamp_far_ahead = 0;  // and beyond it
};

class Twin {
 public:
  using Scripts = std::map<std::string, std::string, std::less<>>;
  using Rows = std::span<const Operation* const>;

  /// `scripts` take the time from their last argument; `rows` are the kernels.
  Twin(RedisClient& client, const Scripts& scripts, Rows rows, Random& random);

  /// Makes `decisions` random requests. Returns the first difference.
  std::optional<std::string> run(std::size_t decisions);
  [[nodiscard]] const TwinCounts& counts() const noexcept { return counts_; }

  /// Runs scripts with the server's own clock: each must decide at an instant between two readings
  /// of TIME, whatever the last argument says, and as the kernel does. Returns the first
  /// difference.
  static std::optional<std::string> check_server_time(RedisClient& client, const Scripts& scripts,
                                                      Rows rows, Random& random);

 private:
  /// What lies under one key, as the test knows it.
  struct Slot {
    std::string key;
    std::string raw;          // empty: absent
    bool wrong_type = false;  // a list lies there
    Arguments config{};
  };
  struct Request {
    const Operation* row;
    Slot* slot;
    Arguments args;
  };
  struct Pending {
    std::string what;
    std::string nonce;
    Word now;
    std::vector<Verdict> verdicts;
    std::vector<std::string> keys;
    std::vector<std::string> raw;
    std::vector<bool> wrong_type;
    std::vector<bool> wrote;
    std::vector<Word> keep_ms;
    std::size_t preparations = 0;  // replies to read before this one
    bool changed_unallowed = false;
  };

  void tamper(Slot& slot);
  void write_raw(Slot& slot, const std::string& raw);
  void move_time();
  Request draw_request(Slot& slot);
  void decide();
  /// Works out what the request at `index` does; returns the state's bytes after it.
  std::string foresee(const Request& request, Pending& pending);
  void send(const std::vector<Request>& requests, const Pending& pending);
  std::optional<std::string> read_all();
  std::optional<std::string> read_state(const Pending& pending, std::size_t index);

  RedisClient& client_;
  std::map<std::string, std::string, std::less<>> shas_;
  Rows rows_;
  Random& random_;
  std::vector<Slot> slots_;
  std::vector<Pending> pending_;
  std::size_t preparations_ = 0;  // commands sent that only prepare the next request
  Word now_;
  Verdict last_{};
  TwinCounts counts_;
};

}  // namespace sluice::test
