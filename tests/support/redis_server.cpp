// Process handling of RedisServer.
#include "tests/support/redis_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/redis_client.hpp"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A process is looked at every tick, and given up after ten seconds of them.
constexpr auto tick = 2ms;
constexpr int patience = 5'000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_program(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0; }

std::string find_binary() {
  const std::string named = environment("SLUICE_REDIS_SERVER");
  if (named.find('/') != std::string::npos) {
    if (is_program(named)) return named;
    throw std::runtime_error("SLUICE_REDIS_SERVER names no program: " + named);
  }
  std::istringstream folders(environment("PATH") + ":/usr/sbin:/usr/local/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const std::string& name : named.empty()
                                       ? std::vector<std::string>{"redis-server", "valkey-server"}
                                       : std::vector<std::string>{named}) {
      if (is_program(fs::path(folder) / name)) return fs::path(folder) / name;
    }
  }
  throw std::runtime_error(
      "no redis-server found: install redis-server, name one in SLUICE_REDIS_SERVER, or leave "
      "these tests out with SLUICE_NO_REDIS=1");
}

std::string make_folder() {
  std::string path = (fs::temp_directory_path() / "sluice-redis-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
  return path;
}

/// Binds a loopback port for a moment, any for 0, and returns it; 0 if that fails.
std::uint16_t bind_loopback(unsigned port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;  // a port that waits for late packets is free to a server
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool ok =
      fd >= 0 && ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  if (fd >= 0) ::close(fd);
  return ok ? ntohs(address.sin_port) : std::uint16_t{0};
}

}  // namespace

bool without_redis() { return environment("SLUICE_NO_REDIS") == "1"; }

std::uint16_t free_port() {
  const std::uint16_t port = bind_loopback(0);
  if (port == 0) throw std::runtime_error("no free loopback port");
  return port;
}

/// Takes the port for this process until it ends: no other test process starts a server on it while
/// ours is killed. The name of the socket is abstract, so that nothing is left on the disk.
bool reserve(unsigned port) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "sluice-test-port-" + std::to_string(port);
  name.copy(address.sun_path + 1, name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  if (fd >= 0) ::close(fd);
  return false;
}

std::uint16_t free_server_port() {
  // Below the ports of clients, 32768 and up by default, with those of the bus.
  constexpr unsigned first = 12'000;
  constexpr unsigned count = 10'000;
  constexpr unsigned bus = 10'000;
  std::random_device draw;
  for (int attempts = 1'000; attempts > 0; --attempts) {
    const unsigned port = first + draw() % count;
    const bool is_free = bind_loopback(port) == port && bind_loopback(port + bus) == port + bus;
    if (is_free && reserve(port)) {
      return static_cast<std::uint16_t>(port);
    }
  }
  throw std::runtime_error("no free loopback port for a server");
}

RedisServer::RedisServer(std::vector<std::string> config, std::vector<std::string> environment)
    : RedisServer(RedisSetup{.config = std::move(config), .environment = std::move(environment)}) {}

RedisServer::RedisServer(RedisSetup setup)
    : setup_(std::move(setup)), binary_(find_binary()), folder_(make_folder()) {
  socket_ = folder_ + "/socket";
  constexpr int attempts = 5;
  for (int i = 0; i < attempts; ++i) {
    port_ = free_server_port();  // if it is taken meanwhile, the server does not come up
    spawn();
    if (wait_until_ready()) return;
    end(SIGKILL);
  }
  const std::string text = log();
  fs::remove_all(folder_);
  throw std::runtime_error(binary_ + " did not come up:\n" +
                           text.substr(text.size() > 2000 ? text.size() - 2000 : 0));
}

RedisServer::~RedisServer() {
  end(SIGKILL);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void RedisServer::start() {
  if (running()) return;
  spawn();
  if (wait_until_ready()) return;
  end(SIGKILL);
  throw std::runtime_error(binary_ + " did not come up again:\n" + log());
}

void RedisServer::stop() { end(SIGTERM); }

void RedisServer::kill() { end(SIGKILL); }

void RedisServer::restart() {
  kill();
  start();
}

void RedisServer::suspend() {
  if (running()) ::kill(pid_, SIGSTOP);
}

void RedisServer::resume() {
  if (running()) ::kill(pid_, SIGCONT);
}

std::string RedisServer::log() const {
  std::ifstream file(folder_ + "/log");
  return {std::istreambuf_iterator<char>(file), {}};
}

void RedisServer::spawn() {
  const std::string path = folder_ + "/redis.conf";
  std::ofstream conf(path);
  conf << "bind 127.0.0.1\n"
       << (setup_.tls ? "port 0\ntls-port " : "port ") << port_ << "\nunixsocket " << socket_
       << "\ndir " << folder_ << "\nlogfile " << folder_
       << "/log\nsave \"\"\nappendonly no\ndaemonize no\n";
  if (!setup_.password.empty()) {
    conf << "requirepass " << setup_.password << "\nmasterauth " << setup_.password << '\n';
  }
  for (const std::string& line : setup_.config) conf << line << '\n';
  conf.close();
  std::vector<char*> variables;  // made before the fork, after which nothing may be allocated
  for (std::string& variable : setup_.environment) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  std::string file = path;
  std::vector<char*> arguments{binary_.data(), file.data()};
  for (std::string& argument : setup_.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::execve(binary_.c_str(), arguments.data(), variables.data());
    ::_exit(127);
  }
}

bool RedisServer::wait_until_ready() {
  for (int i = 0; i < patience; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    try {
      RedisClient client(socket_);
      RedisReply reply = client({"PING"});
      // A password or an ACL also means that it is up; LOADING means that it is not.
      if (!reply.is_error() || reply.text.rfind("NOAUTH", 0) == 0) return true;
    } catch (const std::runtime_error&) {  // not listening yet
    }
    std::this_thread::sleep_for(tick);
  }
  return false;
}

void RedisServer::end(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGCONT);
  ::kill(pid_, signal);
  for (int i = 0; ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) {
    if (i == patience) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(tick);
  }
  pid_ = -1;
}

}  // namespace sluice::test
