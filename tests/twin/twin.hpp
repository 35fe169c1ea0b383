// Drives kernels in C++ and scripts in a real server with the same requests, at times of the
// test's choosing, and compares everything: statuses, what remains, hints, output words, the bytes
// of state and how long they live. Threading: one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/tamper.hpp"
#include "tests/twin/wire.hpp"

namespace sluice::test {

/// How often each kind of answer and of situation came up, so that a test can require them all.
struct TwinCounts {
  std::size_t decisions = 0;
  std::size_t to_difference = 0;  // the first decision that differed, counted from 1
  std::size_t steps = 0;
  std::size_t plans = 0;  // of two steps or more
  std::size_t once = 0;   // with an id, and asked again
  std::size_t allowed = 0;
  std::size_t refused = 0;
  std::size_t failed = 0;
  std::size_t corrupt = 0;  // of the failed
  std::size_t writes = 0;
  std::size_t stamp_ahead = 0;      // a word ahead of the clock, within the bound of stamps
  std::size_t stamp_far_ahead = 0;  // and beyond it
  std::size_t ttl_kept = 0;         // writes of a cell that let its time to live be
};

class Twin {
 public:
  /// `scripts` take the time from their last argument; the subjects' rows are the kernels.
  Twin(RedisClient& client, const Scripts& scripts, std::span<const Subject> subjects,
       Random& random);

  /// Makes `decisions` random requests. Returns the first difference.
  std::optional<std::string> run(std::size_t decisions);
  [[nodiscard]] const TwinCounts& counts() const noexcept { return counts_; }

 private:
  /// What lies under one key, as the test knows it.
  struct Slot {
    const Subject* subject;
    std::string key;
    std::string raw{};           // empty: absent
    bool wrong_type = false;     // a list lies there
    Word ttl_ms = 0;             // when it was last set, at most
    Word least_ttl_ms = 0;       // and at least
    Word keep_ms = 0;            // of the last request
    bool unusable = false;       // the last request could do nothing with the state
    std::vector<Word> record{};  // what the last grant told that can be given back
    testing::detail::Configuration config{};
  };
  struct Request {
    const Operation* row;
    Slot* slot;
    Arguments args;
    std::vector<Word> table;
    Word keep_ms;
  };
  /// What must be found under one key.
  struct Expected {
    std::string key;
    StateKind kind{};
    std::string raw;
    bool wrong_type = false;
    Word least_ttl_ms = 0;
    Word ttl_ms = 0;
  };
  /// What must come back for one message.
  struct Pending {
    std::string what;
    std::size_t number = 0;  // of the decision, counted from 1
    std::string fault{};     // of the kernel alone
    std::string nonce{};
    Word at = 0;
    std::vector<Verdict> verdicts{};
    std::string output{};  // packed
    std::vector<Expected> states{};
    std::size_t preparations = 0;  // replies to read before this one
  };

  void draw_mood();
  void tamper(Slot& slot);
  void move_time();
  void echo(Request& request);
  Request draw_request(Slot& slot, bool takes);
  void decide();
  /// Works out what a request does; returns the state's bytes after it.
  std::string foresee(const Request& request, Pending& pending);
  void settle_cell(const Request& request, std::string next);
  void settle(const Request& request, const std::string& next);
  void send(const std::vector<Request>& requests, Pending& pending, bool as_plan,
            const std::string& record);
  void ask_again(const std::vector<Request>& requests, const Pending& first,
                 const std::string& record);
  void ask_under_used_id(const std::vector<Request>& requests, const Pending& first,
                         const std::string& record);
  void peek(Pending& pending, std::span<const Request> requests);
  std::optional<std::string> read_all();

  RedisClient& client_;
  Scripts shas_;
  Heads heads_;
  Random& random_;
  std::vector<Slot> slots_;
  std::vector<Pending> pending_;
  std::size_t preparations_ = 0;  // commands sent that only prepare the next request
  std::size_t hot_ = 1;           // so many of the slots are asked at present
  bool calm_ = false;
  Word now_;
  Verdict last_{};
  Word fingerprint_ = 0;  // of the plan under the id that is asked
  TwinCounts counts_;
};

/// Asks about states with words, behind those that the driver looks at, that no rule has written:
/// whoever meets one calls the state corrupt and leaves it as it is. A twin that reads more at a
/// time than its kernel may meet one where the kernel does not. Returns the first difference.
[[nodiscard]] std::optional<std::string> check_spoilt(RedisClient& client, const Scripts& scripts,
                                                      std::span<const Subject> subjects,
                                                      std::size_t decisions, Random& random);

/// Asks about tables of leases of which no place is free, or one, whole and torn within a place.
/// Returns the first difference; nothing without leases among the subjects.
[[nodiscard]] std::optional<std::string> check_full_tables(RedisClient& client,
                                                           const Scripts& scripts,
                                                           std::span<const Subject> subjects,
                                                           Random& random);

/// Asks for plans under ids whose records were spoilt: of another type or kind, torn, too short, of
/// another plan, too old, or with words that no plan can have. Returns the first difference.
[[nodiscard]] std::optional<std::string> check_records(RedisClient& client, const Scripts& scripts,
                                                       std::span<const Subject> subjects,
                                                       std::size_t decisions, Random& random);

/// Runs scripts with the server's own clock: each must decide at an instant between two readings
/// of TIME, whatever the last argument says, and as the kernel does. Returns the first difference.
[[nodiscard]] std::optional<std::string> check_server_time(RedisClient& client,
                                                           const Scripts& scripts,
                                                           std::span<const Subject> subjects,
                                                           Random& random);

}  // namespace sluice::test
