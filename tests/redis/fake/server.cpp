// Plain sockets. Every wait looks at the stop flag every few milliseconds.
#include "tests/redis/fake/server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace sluice::test {
namespace {

constexpr int tick_ms = 5;

bool is_ready(int fd, short events) {
  pollfd entry{fd, events, 0};
  return ::poll(&entry, 1, tick_ms) > 0;
}

}  // namespace

std::optional<Command> Peer::read() {
  for (;;) {
    if (auto command = take_command(bytes_)) return command;
    while (!is_ready(fd_, POLLIN)) {
      if (stopping_) return std::nullopt;
    }
    char chunk[4096];
    const ssize_t size = ::recv(fd_, chunk, sizeof chunk, 0);
    if (size <= 0) return std::nullopt;
    bytes_.append(chunk, static_cast<std::size_t>(size));
  }
}

std::optional<Command> Peer::read_call() {
  while (auto command = read()) {
    if (is_call(*command)) return command;
    if (!send(command->at(0) == "PING" ? "+PONG\r\n" : "+OK\r\n")) break;
  }
  return std::nullopt;
}

std::optional<Command> Peer::read_behind_login() {
  while (auto command = read()) {
    const std::string& name = command->at(0);
    if (name != "PING" && name != "AUTH" && name != "HELLO" && name != "SELECT" && name != "CLIENT")
      return command;
    if (!send(name == "PING" ? "+PONG\r\n" : "+OK\r\n")) break;
  }
  return std::nullopt;
}

bool Peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    while (!is_ready(fd_, POLLOUT)) {
      if (stopping_) return false;
    }
    const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

void Peer::wait_for_close() {
  char chunk[4096];
  while (!stopping_) {
    if (is_ready(fd_, POLLIN) && ::recv(fd_, chunk, sizeof chunk, 0) <= 0) return;
  }
}

void Peer::reset_on_close() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

FakeServer::FakeServer(Behaviour behaviour, Serving serving)
    : behaviour_(std::move(behaviour)), serving_(serving) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("no free loopback port");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

FakeServer::~FakeServer() {
  stopping_ = true;
  thread_.join();
  crowd_.clear();
  ::close(listener_);
}

void FakeServer::run() {
  while (!stopping_) {
    if (!is_ready(listener_, POLLIN)) continue;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int at_once = 1;  // or a reply may wait for the other end to confirm the one before
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    const int number = connections_++;
    if (serving_ == Serving::one_by_one) {
      serve(fd, number);
    } else {
      crowd_.emplace_back([this, fd, number] { serve(fd, number); });
    }
  }
}

void FakeServer::serve(int fd, int number) {
  Peer peer(fd, stopping_);
  behaviour_(peer, number);
  ::close(fd);
}

std::string hello_reply(const std::string& version, const std::string& server) {
  std::string reply = "*14\r\n";
  for (const std::string& word : {std::string("server"), server, std::string("version"), version}) {
    reply += bulk(word);
  }
  reply += bulk("proto") + ":2\r\n" + bulk("id") + ":7\r\n" + bulk("mode") + bulk("standalone") +
           bulk("role") + bulk("master") + bulk("modules") + "*1\r\n*8\r\n" + bulk("name") +
           bulk("version") + bulk("ver") + ":1\r\n" + bulk("path") + bulk("/m.so") + bulk("args") +
           "*0\r\n";
  return reply;
}

FakeServer::Behaviour serving(int calls) {
  return [calls](Peer& peer, int) {
    for (Word at = 1; at <= calls; ++at) {
      const auto call = peer.read_call();
      if (!call || !peer.send(allowing(*call, at))) return;
    }
  };
}

void serve_well(Peer& peer, Word first_at) {
  while (const auto call = peer.read_call()) {
    if (!peer.send(allowing(*call, first_at++))) return;
  }
}

}  // namespace sluice::test
