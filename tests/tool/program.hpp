// The program, run as an operator runs it, and a server for it. Threading: the test's thread.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/redis/redis_store.hpp"
#include "tests/support/redis_client.hpp"
#include "tests/support/redis_server.hpp"
#include "tool/state.hpp"

namespace sluice::test {

struct Ran {
  int code;  // 128 + the signal that ended it
  std::string output;
};

/// Runs a line of the shell, in which $SLUICE is the program; with the server of `url`.
inline Ran shell(const std::string& url, const std::string& line) {
  const std::string command = "export SLUICE_REDIS='" + url + "' SLUICE='" SLUICE_TOOL "'; " + line;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  Ran ran{0, {}};
  char bytes[4096];
  for (std::size_t size = 0; (size = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;) {
    ran.output.append(bytes, size);
  }
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

/// `sluice <words>`, whose errors are with the output.
inline Ran sluice_tool(const std::string& url, const std::string& words) {
  return shell(url, "\"$SLUICE\" " + words + " 2>&1");
}

inline std::string url_of(const RedisServer& server) { return "unix://" + server.unix_socket(); }

inline RedisOptions options_of(const RedisServer& server) {
  RedisOptions options;
  options.unix_socket = server.unix_socket();
  options.call_timeout = std::chrono::seconds{20};
  options.connect_timeout = std::chrono::seconds{20};
  return options;
}

/// A server, and how tests reach it.
struct Site {
  RedisServer server;
  std::string url = url_of(server);
  std::unique_ptr<RedisStore> store = make_redis_store(options_of(server));
  RedisClient client{server.unix_socket()};

  Ran run(const std::string& words) { return sluice_tool(url, words); }
};

/// Each line as JSON.
inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> values;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) values.push_back(nlohmann::json::parse(line));
  return values;
}

}  // namespace sluice::test
