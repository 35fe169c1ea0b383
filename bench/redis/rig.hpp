// What all cases stand on: a server of their own, one plain hiredis connection, and the meters.
// Threading: the benchmark's main thread, which must outlive the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/comparisons.hpp"
#include "sluice/plan.hpp"
#include "sluice/redis/redis_store.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"

struct redisContext;

namespace sluice::bench {

/// A command in words, made once and sent as often as wished.
class Command {
 public:
  explicit Command(std::vector<std::string> words);
  Command(Command&&) = default;
  Command(const Command&) = delete;

  [[nodiscard]] int count() const noexcept { return static_cast<int>(words_.size()); }
  [[nodiscard]] const std::vector<std::string>& words() const noexcept { return words_; }
  [[nodiscard]] const char** starts() const noexcept { return starts_.data(); }
  [[nodiscard]] const std::size_t* sizes() const noexcept { return sizes_.data(); }

 private:
  std::vector<std::string> words_;
  mutable std::vector<const char*> starts_;
  std::vector<std::size_t> sizes_;
};

/// hiredis as it is usually used: redisAppendCommandArgv() and redisGetReply().
class RawConnection {
 public:
  explicit RawConnection(const std::string& unix_socket);

  /// Sends `depth` times the command, then reads the replies; returns the last one if it is a
  /// string. Throws std::runtime_error on an error reply.
  std::string pipeline(const Command& command, std::size_t depth);
  /// The same for commands that differ, each sent once.
  std::string pipeline(std::span<const Command> commands);

 private:
  std::string read(std::size_t replies);

  struct Close {
    void operator()(redisContext* context) const noexcept;
  };
  std::unique_ptr<redisContext, Close> context_;
};

class Rig {
 public:
  /// Of every request().
  static constexpr std::uint64_t nonce = 0x5eed;

  Rig();

  [[nodiscard]] RawConnection& raw() noexcept { return raw_; }
  [[nodiscard]] Store& store() noexcept { return *store_; }
  [[nodiscard]] ComparisonReporter& reporter() noexcept { return reporter_; }

  /// Loads the script and returns EVALSHA with these keys and arguments.
  Command script(std::string_view text, const std::vector<std::string>& keys,
                 const std::vector<std::string>& args);
  /// Loads the store's script for the steps and returns the request that the store would send.
  Command request(std::span<const Step> steps);
  /// The same by a function.
  Command function_request(std::span<const Step> steps);

  /// Sends one command apart from what is measured.
  void command(std::initializer_list<std::string_view> words) { control_(words); }

  /// Microseconds of one EVALSHA or FCALL since reset_statistics(), by the server's own count.
  [[nodiscard]] double server_us();
  /// Microseconds of all commands that a client sent since then: scripts, and those on sorted sets
  /// that no script sends.
  [[nodiscard]] double spent_us();
  void reset_statistics();
  [[nodiscard]] double memory_usage(std::string_view key);
  /// Notes the bytes of a case for the table.
  void note_bytes(const std::string& name, double bytes) { reporter_.note(name, "bytes", bytes); }

 private:
  std::string load(std::string_view text);

  test::RedisServer server_;
  test::RedisClient control_;
  RawConnection raw_;
  std::unique_ptr<RedisStore> store_;
  ComparisonReporter reporter_;
};

/// Measures one round of a case: from construction to finish().
class Round {
 public:
  Round(Rig& rig, benchmark::State& state);
  /// Notes the round in the counters of the case. `server_us`: of one decision.
  void finish(double server_us);

 private:
  benchmark::State& state_;
  double cpu_us_;
  std::chrono::steady_clock::time_point start_;
};

/// A case that is measured by the server: each round sends `commands()`, one batch after the other,
/// and begins again at their end.
struct ServerCase {
  std::string name;
  std::function<std::vector<Command>()> commands;
  std::size_t depth = 128;                             ///< decisions of a batch
  std::size_t commands_each = 1;                       ///< of a decision
  std::function<void(const std::string&)> check = {};  ///< looks at the last reply of a round
};

/// The batches of a round.
inline constexpr std::size_t batches = 32;

void add_server_case(Rig& rig, ServerCase added);

}  // namespace sluice::bench
