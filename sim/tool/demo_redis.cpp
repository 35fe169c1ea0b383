// Several processes on one key of a redis-server. The server listens on a unix socket in a folder
// that only this user can enter; both are gone when the demo ends, also after Ctrl-C.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/text.hpp"
#include "sim/log/load.hpp"
#include "sim/tool/child.hpp"
#include "sim/tool/demo.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::tool {
namespace {

namespace fs = std::filesystem;

constexpr int process_count = 4;
constexpr Span patience = std::chrono::seconds{10};
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

/// Waits until `done()`. Throws Interrupted, and std::runtime_error after ten seconds.
template <class Done>
void wait_until(const Done& done, const std::string& what) {
  const SystemClock clock;
  for (const Time end = clock.now() + patience; !done();) {
    if (clock.now() > end) throw std::runtime_error(what + " within 10 s");
    pause_for(std::chrono::milliseconds{10});
  }
}

bool can_connect(const std::string& path) {
  boost::asio::io_context context;
  boost::asio::local::stream_protocol::socket socket(context);
  boost::system::error_code error;
  socket.connect(path, error);
  return !error;
}

class Server {
 public:
  Server(const std::string& program, const PrivateFolder& folder)
      : socket_(folder.file("socket")),
        log_(folder.file("server.log")),
        child_([&] { return become(program, folder.file("")); }) {
    const auto listens = [&] {
      if (child_.ended()) throw std::runtime_error(program + " ended at once:\n" + log());
      return can_connect(socket_);
    };
    wait_until(listens, program + " did not listen");
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { child_.stop(stop_patience); }

  [[nodiscard]] const std::string& socket_path() const { return socket_; }

 private:
  /// In the child. Returns if the program cannot be run.
  [[nodiscard]] int become(const std::string& program, const std::string& folder) const {
    const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(program.c_str(), program.c_str(), "--port", "0", "--unixsocket", socket_.c_str(),
          "--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--daemonize", "no",
          "--dir", folder.c_str(), nullptr);
    return 127;
  }

  [[nodiscard]] std::string log() const {
    std::ifstream file(log_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.size() > 2'000 ? text.substr(text.size() - 2'000) : text;
  }

  std::string socket_;
  std::string log_;
  Child child_;
};

/// What the workers and their parent share.
struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::array<LoadCounts, process_count> counts{};
};

/// A worker: connects, and asks from the moment at which all are ready.
int work(const std::string& socket, Shared& shared, LoadCounts& counts) {
  RedisOptions options;
  options.unix_socket = socket;
  const auto store = make_redis_store(std::move(options));
  const TokenBucket bucket(*store, "demo", demo_quota());
  const BoundTokenBucket bound = bucket.at("everyone");
  (void)bound.peek();  // connects
  ++shared.ready;
  while (!shared.go) std::this_thread::yield();
  const SystemClock clock;
  counts = run_load(clock, clock.now() + load_length,
                    [&](std::error_code& error) { return bound.try_acquire(error); });
  return 0;
}

/// Starts the workers, lets them go at the same moment and adds up what they have counted.
LoadCounts run_workers(const std::string& socket) {
  const auto memory = boost::interprocess::anonymous_shared_memory(sizeof(Shared));
  auto& shared = *::new (memory.get_address()) Shared;
  std::vector<Child> workers;
  for (LoadCounts& counts : shared.counts) {
    workers.emplace_back([&] { return work(socket, shared, counts); });
  }
  const auto have_ended = [&] { return std::ranges::all_of(workers, &Child::ended); };
  const auto are_ready = [&] {
    if (std::ranges::any_of(workers, &Child::ended)) {
      throw std::runtime_error("a worker could not start");
    }
    return shared.ready == process_count;
  };
  wait_until(are_ready, "the workers did not start");
  shared.go = true;
  wait_until(have_ended, "the workers did not end");
  LoadCounts total;
  for (const LoadCounts& counts : shared.counts) {
    if (counts.decisions() + counts.failed == 0) {
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

}  // namespace sluice::tool
