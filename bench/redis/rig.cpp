// The server, the connection and the meters.
#include "bench/redis/rig.hpp"

#include <hiredis/hiredis.h>
#include <sys/resource.h>

#include <charconv>
#include <stdexcept>

#include "backends/redis/protocol/protocol.hpp"

namespace sluice::bench {
namespace {

/// CPU time of all threads of this process, in microseconds; the server is another process.
double process_cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

/// The bulk strings of an encoded command: "*2\r\n$1\r\na\r\n$2\r\nbc\r\n" is {"a", "bc"}.
std::vector<std::string> words_of(std::string_view encoded) {
  std::vector<std::string> words;
  const auto header = [&](char type) {
    if (encoded.empty() || encoded.front() != type) throw std::runtime_error("not a command");
    const std::size_t end = encoded.find("\r\n");
    std::size_t number = 0;
    std::from_chars(encoded.data() + 1, encoded.data() + end, number);
    encoded.remove_prefix(end + 2);
    return number;
  };
  for (std::size_t left = header('*'); left > 0; --left) {
    const std::size_t size = header('$');
    words.emplace_back(encoded.substr(0, size));
    encoded.remove_prefix(size + 2);
  }
  return words;
}

RedisOptions options_for(const test::RedisServer& server) {
  RedisOptions options;
  options.unix_socket = server.unix_socket();
  options.call_timeout = std::chrono::seconds{10};  // a round on a busy machine must not be cut
  options.stall_timeout = std::chrono::seconds{20};
  return options;
}

}  // namespace

Command::Command(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_) {
    starts_.push_back(word.data());
    sizes_.push_back(word.size());
  }
}

void RawConnection::Close::operator()(redisContext* context) const noexcept { redisFree(context); }

RawConnection::RawConnection(const std::string& unix_socket)
    : context_(redisConnectUnix(unix_socket.c_str())) {
  if (!context_ || context_->err != 0) throw std::runtime_error("cannot connect");
}

std::string RawConnection::pipeline(const Command& command, std::size_t depth) {
  for (std::size_t i = 0; i < depth; ++i) {
    redisAppendCommandArgv(context_.get(), command.count(), command.starts(), command.sizes());
  }
  return read(depth);
}

std::string RawConnection::pipeline(std::span<const Command> commands) {
  for (const Command& command : commands) {
    redisAppendCommandArgv(context_.get(), command.count(), command.starts(), command.sizes());
  }
  return read(commands.size());
}

std::string RawConnection::read(std::size_t replies) {
  std::string last;
  for (std::size_t i = 0; i < replies; ++i) {
    void* raw = nullptr;
    if (redisGetReply(context_.get(), &raw) != REDIS_OK) throw std::runtime_error("no reply");
    auto* reply = static_cast<redisReply*>(raw);
    const bool failed = reply->type == REDIS_REPLY_ERROR;
    if (failed || (i + 1 == replies && reply->type == REDIS_REPLY_STRING)) {
      last.assign(reply->str, reply->len);
    }
    freeReplyObject(reply);
    if (failed) throw std::runtime_error(last);
  }
  return last;
}

Rig::Rig()
    : control_(server_.unix_socket()),
      raw_(server_.unix_socket()),
      store_(make_redis_store(options_for(server_))) {}

std::string Rig::load(std::string_view text) {
  const auto reply = control_({"SCRIPT", "LOAD", text});
  if (reply.is_error()) throw std::runtime_error(reply.text);
  return reply.text;
}

Command Rig::script(std::string_view text, const std::vector<std::string>& keys,
                    const std::vector<std::string>& args) {
  std::vector<std::string> words{"EVALSHA", load(text), std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), args.begin(), args.end());
  return Command(std::move(words));
}

Command Rig::request(std::span<const Step> steps) {
  redis_detail::Request request;
  redis_detail::encode(request, steps, nonce, {});
  load(request.script->text);
  std::string encoded;
  redis_detail::append_evalsha(encoded, request);
  return Command(words_of(encoded));
}

Command Rig::function_request(std::span<const Step> steps) {
  redis_detail::Request request;
  redis_detail::encode(request, steps, nonce, {});
  if (const auto reply = control_({"FUNCTION", "LOAD", "REPLACE", redis_functions()});
      reply.is_error()) {
    throw std::runtime_error(reply.text);
  }
  std::string encoded;
  redis_detail::append_fcall(encoded, request);
  return Command(words_of(encoded));
}

void Rig::reset_statistics() { control_({"CONFIG", "RESETSTAT"}); }

namespace {

struct Usage {
  double us = 0;
  double calls = 0;
};

/// Of one command, from INFO commandstats.
Usage usage_of(const std::string& statistics, const std::string& command) {
  const std::size_t at = statistics.find("cmdstat_" + command + ":");
  if (at == std::string::npos) return {};
  const auto field = [&](std::string_view name) {
    return std::stod(statistics.substr(statistics.find(name, at) + name.size()));
  };
  return {field("usec="), field("calls=")};
}

}  // namespace

double Rig::server_us() {
  const std::string statistics = control_({"INFO", "commandstats"}).text;
  const Usage scripts = usage_of(statistics, "evalsha");
  const Usage functions = usage_of(statistics, "fcall");
  const double calls = scripts.calls + functions.calls;
  return calls > 0 ? (scripts.us + functions.us) / calls : 0;
}

double Rig::spent_us() {
  const std::string statistics = control_({"INFO", "commandstats"}).text;
  double us = 0;
  for (const char* command : {"evalsha", "zrem", "zremrangebyscore"}) {
    us += usage_of(statistics, command).us;
  }
  return us;
}

double Rig::memory_usage(std::string_view key) {
  const auto reply = control_({"MEMORY", "USAGE", key, "SAMPLES", "0"});
  return static_cast<double>(reply.integer);
}

Round::Round(Rig& rig, benchmark::State& state) : state_(state) {
  rig.reset_statistics();
  cpu_us_ = process_cpu_us();
  start_ = std::chrono::steady_clock::now();
}

void Round::finish(double server_us) {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_;
  const auto count = static_cast<double>(state_.iterations());
  state_.counters["server us"] = server_us;
  state_.counters["client us"] = (process_cpu_us() - cpu_us_) / count;
  state_.counters["1000/s"] = count / wall.count() / 1000;
  state_.SetIterationTime(server_us * 1e-6 * count);
}

void add_server_case(Rig& rig, ServerCase added) {
  const std::string name = "redis/server/" + added.name;
  const auto depth = static_cast<benchmark::IterationCount>(added.depth);
  const auto run = [&rig, depth, one = std::move(added)](benchmark::State& state) {
    const std::vector<Command> commands = one.commands();
    const std::size_t batch = one.depth * one.commands_each;
    Round round(rig, state);
    std::string last;
    std::size_t sent = 0;
    while (state.KeepRunningBatch(depth)) {
      last = rig.raw().pipeline(std::span(commands).subspan(sent, batch));
      sent = (sent + batch) % commands.size();
    }
    const auto decisions = static_cast<double>(state.iterations());
    round.finish(one.commands_each == 1 ? rig.server_us() : rig.spent_us() / decisions);
    if (one.check) one.check(last);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->Iterations(static_cast<benchmark::IterationCount>(batches) * depth)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace sluice::bench
