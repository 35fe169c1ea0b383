// What all cases stand on: a server of their own, one plain hiredis connection, and the meters.
// Threading: the benchmark's main thread, which must outlive the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/redis/ledger.hpp"
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
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }

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

 private:
  std::string load(std::string_view text);

  test::RedisServer server_;
  test::RedisClient control_;
  RawConnection raw_;
  std::unique_ptr<RedisStore> store_;
  Ledger ledger_;
};

/// Measures one round: from construction to finish().
class Round {
 public:
  explicit Round(Rig& rig);
  /// Notes the round in the ledger and returns it.
  Sample finish(const std::string& name, std::size_t decisions);
  /// The same, where one decision takes several commands.
  Sample finish_cycles(const std::string& name, std::size_t decisions);

 private:
  Sample note(const std::string& name, std::size_t decisions, double server_us);

  Rig& rig_;
  double cpu_us_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace sluice::bench
