// Several processes on one key of a redis-server. The server listens on a unix socket in a folder
// that only this user can enter; both are gone when the demo ends, also after Ctrl-C.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cli/text.hpp"
#include "sim/log/load.hpp"
#include "sim/tool/child.hpp"
#include "sim/tool/demo.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::tool {
namespace {

namespace fs = std::filesystem;

constexpr int process_count = 4;
constexpr Span start_patience = std::chrono::seconds{10};
constexpr Span stop_patience = std::chrono::seconds{3};

Quota demo_quota() { return Quota::per_second(5'000).burst(500); }

/// The server's path: SLUICE_REDIS_SERVER, else the first of the names in PATH.
std::string find_server() {
  if (const char* named = std::getenv("SLUICE_REDIS_SERVER")) return named;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* name : {"redis-server", "valkey-server"}) {
      const fs::path candidate = fs::path(folder) / name;
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  return {};
}

class PrivateFolder {
 public:
  PrivateFolder() {
    const char* temporary = std::getenv("TMPDIR");
    std::string name = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
    // A socket's path must fit in sockaddr_un.
    if (name.size() > 60) name = "/tmp";
    name += "/sluice-demo-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "no private folder in " + name);
    }
    path_ = name;
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

bool can_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size(), sizeof address.sun_path - 1));
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const bool connected =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(descriptor);
  return connected;
}

class Server {
 public:
  Server(const std::string& program, const PrivateFolder& folder)
      : socket_(folder.file("socket")),
        log_(folder.file("server.log")),
        child_({program, "--port", "0", "--unixsocket", socket_, "--unixsocketperm", "700",
                "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", folder.file("")},
               log_) {
    const SystemClock clock;
    const Time end = clock.now() + start_patience;
    while (!can_connect(socket_)) {
      if (child_.ended()) throw std::runtime_error(program + " ended at once:\n" + log());
      if (clock.now() > end) throw std::runtime_error(program + " did not listen within 10 s");
      pause_for(std::chrono::milliseconds{10});
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { child_.stop(stop_patience); }

  [[nodiscard]] const std::string& socket_path() const { return socket_; }

 private:
  [[nodiscard]] std::string log() const {
    std::ifstream file(log_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.size() > 2'000 ? text.substr(text.size() - 2'000) : text;
  }

  std::string socket_;
  std::string log_;
  Child child_;
};

/// Starts the workers, lets them go at the same moment and adds up what they report.
LoadCounts run_workers(const std::string& socket) {
  std::vector<Child> workers;
  for (int i = 0; i < process_count; ++i) {
    workers.emplace_back(
        std::vector<std::string>{fs::read_symlink("/proc/self/exe"), "--redis-worker", socket});
  }
  for (Child& worker : workers) {
    if (const std::string line = worker.read_line(start_patience); line != "ready") {
      throw std::runtime_error("a worker could not start: " + printable(line, 200));
    }
  }
  for (Child& worker : workers) worker.write("go\n");
  LoadCounts total;
  for (Child& worker : workers) {
    std::istringstream line(worker.read_line(load_length + start_patience));
    LoadCounts counts;
    if (!(line >> counts.admitted >> counts.refused >> counts.failed >> counts.first >>
          counts.last)) {
      throw std::runtime_error("a worker ended without a report");
    }
    total.add(counts);
  }
  return total;
}

}  // namespace

int run_processes() {
  const std::string program = find_server();
  if (program.empty()) {
    fmt::print(stderr,
               "--redis needs redis-server or valkey-server in PATH "
               "(Debian and Ubuntu: apt-get install redis-server)\n");
    return 1;
  }
  catch_stop_signals();
  try {
    const PrivateFolder folder;
    const Server server(program, folder);
    fmt::print("{} on one key of a {} of their own, as fast as they can, for {}\n",
               plural(process_count, "real process"), fs::path(program).filename().string(),
               duration(load_length));
    std::fflush(stdout);
    return print_load(run_workers(server.socket_path()), demo_quota());
  } catch (const Interrupted&) {
    fmt::print(stderr, "interrupted; the server was stopped and its folder removed\n");
    return 130;
  }
}

int run_redis_worker(const std::string& socket) {
  RedisOptions options;
  options.unix_socket = socket;
  const auto store = make_redis_store(std::move(options));
  const TokenBucket bucket(*store, "demo", demo_quota());
  const BoundTokenBucket bound = bucket.at("everyone");
  std::error_code error;
  (void)bound.peek(1, error);  // connects
  if (error) {
    fmt::print("{}\n", error.message());
    return 1;
  }
  fmt::print("ready\n");
  std::fflush(stdout);
  std::string line;
  if (!std::getline(std::cin, line)) return 1;
  const SystemClock clock;
  const LoadCounts counts = run_load(clock, clock.now() + load_length,
                                     [&](std::error_code& e) { return bound.try_acquire(e); });
  fmt::print("{} {} {} {} {}\n", counts.admitted, counts.refused, counts.failed, counts.first,
             counts.last);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace sluice::tool
