// Cases of the benchmark that ask the server one thing over and over.
#pragma once

#include <functional>
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
  explicit Cases(Rig& rig) : rig_(rig) {}

  /// `check` looks at the last reply of each round.
  void add(const std::string& name, const Command& command,
           std::function<void(const std::string&)> check) {
    rig_.raw().pipeline(command, 1);  // the first call of a key is another case
    ServerCase added{.name = name, .commands = {}};
    added.commands = [words = command.words(), depth = added.depth] {
      std::vector<Command> commands;
      for (std::size_t i = 0; i < depth; ++i) commands.emplace_back(words);
      return commands;
    };
    added.check = std::move(check);
    add_server_case(rig_, std::move(added));
  }

  void add_script(const std::string& name, std::string_view text,
                  const std::vector<std::string>& keys, const std::vector<std::string>& args) {
    add(name, rig_.script(text, keys, args), nullptr);
  }

  void add_plan(const std::string& name, const std::vector<Step>& steps, Word status) {
    add(name, rig_.request(steps), steps, status);
  }

  /// The same by a function.
  void add_function(const std::string& name, const std::vector<Step>& steps, Word status) {
    add(name, rig_.function_request(steps), steps, status);
  }

 private:
  void add(const std::string& name, const Command& command, const std::vector<Step>& steps,
           Word status) {
    std::size_t output = 0;
    for (const Step& step : steps) output += output_count(*step.operation, step.table.size());
    add(name, command, [status, count = steps.size(), output](const std::string& last) {
      expect(last, status, count, output);
    });
  }

  Rig& rig_;
};

}  // namespace sluice::bench
