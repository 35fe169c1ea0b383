// What the tests of scenarios and studies share: messages, files, events and what judges say.
// Threading: none.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/study.hpp"
#include "sluice/sim/run.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

/// The message of the std::invalid_argument that it throws; "" if it throws nothing.
template <class Do>
std::string message_of(Do act) {
  try {
    (void)act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path write(const std::string& name,
                                            const std::string& text) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file << text;
    REQUIRE(file.flush());
    return path_ / name;
  }
  /// The message without the path of the folder.
  [[nodiscard]] std::string shortened(std::string message) const {
    const std::string prefix = path_.string() + "/";
    for (auto at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }

 private:
  std::filesystem::path path_;
};

/// The message for a file with this text after "schema = 1", without its folder; "" if it is good.
inline std::string told_of_file(const std::string& text,
                                const std::vector<std::string>& sets = {}) {
  const Folder folder;
  const auto file = folder.write("s.toml", "schema = 1\n" + text);
  return folder.shortened(message_of([&] { return sim::scenario::load_study(file, sets); }));
}

/// Whether a judge objects to a run, and whether it has looked at it.
inline bool objects(const sim::RunResult& result, std::string_view judge) {
  return std::ranges::find(result.objections, judge, &sim::Objection::judge) !=
         result.objections.end();
}
inline bool has_looked(const sim::RunResult& result, std::string_view judge) {
  return std::ranges::find(result.judges, judge) != result.judges.end();
}

/// The events of this kind in a run.
inline std::vector<sim::JobEvent> events_of(const sim::Scenario& scenario, sim::JobEvent::What what,
                                            sim::RunResult* result = nullptr) {
  std::vector<sim::JobEvent> events;
  sim::RunOptions options;
  options.on_event = [&](const sim::JobEvent& event) {
    if (event.what == what) events.push_back(event);
  };
  const sim::RunResult ran = sim::run(scenario, options);
  if (result != nullptr) *result = ran;
  return events;
}

/// Jobs that call at once, and are done: the scenario on which the tests of fleets build.
inline sim::Scenario plain() {
  using namespace std::chrono_literals;
  sim::Scenario s;
  s.duration = 200s;
  s.fleet.workers = 3;
  s.limiter.kind = sim::LimiterOptions::Kind::none;
  s.client.retries = sim::ClientOptions::Retries::none;
  s.upstream.to = s.upstream.from = sim::Delay::constant(1ms);
  s.upstream.latency = sim::Delay::constant(1ms);
  return s;
}

}  // namespace sluice::test
