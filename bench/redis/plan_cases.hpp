// Cases of the benchmark that ask the server one thing over and over.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/redis/protocol/protocol.hpp"
#include "bench/redis/rig.hpp"

namespace sluice::bench {

/// The status of every step of the last reply must be `status`, so that a case measures what its
/// name says.
inline void expect(const std::string& reply, Word status, std::size_t steps, std::size_t output) {
  redis_detail::Reply decoded;
  if (!redis_detail::decode(decoded, reply, Rig::nonce, steps, output))
    throw std::runtime_error("not a reply");
  for (std::size_t i = 0; i < steps; ++i) {
    if (decoded.verdicts[i].status != status) throw std::runtime_error("another answer than meant");
  }
}

/// Cases that are one command each, sent again and again.
class Cases {
 public:
  static constexpr std::size_t depth = 128;
  static constexpr std::size_t decisions = 32 * depth;

  explicit Cases(Rig& rig) : rig_(rig) {}

  /// `check` looks at the last reply of each round.
  template <class Check>
  void add(const std::string& name, Command made, Check check) {
    auto command = std::make_shared<Command>(std::move(made));
    const auto run = [&rig = rig_, name, command, check](benchmark::State& state) {
      Round round(rig);
      std::string last;
      while (state.KeepRunningBatch(depth)) last = rig.raw().pipeline(*command, depth);
      const Sample sample = round.finish(name, static_cast<std::size_t>(state.iterations()));
      check(last);
      state.counters["client_us"] = sample.client_us;
      state.counters["server_us"] = sample.server_us;
      state.SetIterationTime(sample.server_us * 1e-6 * static_cast<double>(state.iterations()));
    };
    rig_.raw().pipeline(*command, 1);  // the first call of a key is another case
    benchmark::RegisterBenchmark(("redis/server/" + name).c_str(), run)
        ->Iterations(decisions)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }

  void add_script(const std::string& name, std::string_view text,
                  const std::vector<std::string>& keys, const std::vector<std::string>& args) {
    add(name, rig_.script(text, keys, args), [](const std::string&) {});
  }

  void add_plan(const std::string& name, const std::vector<Step>& steps, Word status) {
    add(name, rig_.request(steps), steps, status);
  }

  /// The same by a function.
  void add_function(const std::string& name, const std::vector<Step>& steps, Word status) {
    add(name, rig_.function_request(steps), steps, status);
  }

 private:
  void add(const std::string& name, Command command, const std::vector<Step>& steps, Word status) {
    std::size_t output = 0;
    for (const Step& step : steps) output += output_count(*step.operation, step.table.size());
    add(name, std::move(command), [status, count = steps.size(), output](const std::string& last) {
      expect(last, status, count, output);
    });
  }

  Rig& rig_;
};

}  // namespace sluice::bench
