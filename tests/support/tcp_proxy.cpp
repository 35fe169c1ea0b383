#include "tests/support/tcp_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/redis_server.hpp"

namespace sluice::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_pending = 1U << 18U;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int make_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error("TcpProxy: no socket");
  return fd;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// A socket that is connected to the port, or -1.
int connect_to(std::uint16_t port) {
  const int fd = make_socket();
  const sockaddr_in address = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return -1;
  }
  send_at_once(fd);
  return fd;
}

/// One direction of a connection.
struct Flow {
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
  };

  int from;
  int to;
  std::size_t cut;
  std::deque<Chunk> chunks{};
  std::size_t pending = 0;
  std::size_t forwarded = 0;
  bool ended = false;      // `from` sends no more
  bool shut_down = false;  // and `to` was told

  [[nodiscard]] std::size_t allowance() const noexcept { return cut - forwarded; }
  [[nodiscard]] bool is_cut() const noexcept { return forwarded == cut; }
  [[nodiscard]] bool wants_to_read() const noexcept { return !ended && pending < most_pending; }
  [[nodiscard]] bool wants_to_write(Clock::time_point now) const noexcept {
    return !chunks.empty() && chunks.front().due <= now && allowance() > 0;
  }
};

/// False if the connection is broken.
bool read_into(Flow& flow, std::chrono::microseconds delay) {
  std::array<char, 16'384> buffer;  // NOLINT: filled by recv()
  const ssize_t size = ::recv(flow.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) {
    flow.ended = true;
    return true;
  }
  flow.chunks.push_back(
      {Clock::now() + delay, std::string(buffer.data(), static_cast<std::size_t>(size))});
  flow.pending += static_cast<std::size_t>(size);
  return true;
}

/// The number of bytes sent; none if the connection is broken.
std::optional<std::size_t> write_from(Flow& flow, bool single_bytes) {
  std::string& bytes = flow.chunks.front().bytes;
  std::size_t size = std::min(bytes.size(), flow.allowance());
  if (single_bytes) size = std::min(size, std::size_t{1});
  const ssize_t sent = ::send(flow.to, bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;
    return std::nullopt;
  }
  bytes.erase(0, static_cast<std::size_t>(sent));
  if (bytes.empty()) flow.chunks.pop_front();
  flow.pending -= static_cast<std::size_t>(sent);
  flow.forwarded += static_cast<std::size_t>(sent);
  return static_cast<std::size_t>(sent);
}

}  // namespace

class TcpProxy::Connection {
 public:
  Connection(TcpProxy& proxy, int client, int server, const ProxyRule& rule)
      : proxy_(proxy),
        rule_(rule),
        up_{client, server, rule.cut_up},
        down_{server, client, rule.cut_down} {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    ::close(up_.from);
    ::close(up_.to);
  }

  /// Adds both sockets, in a fixed order; returns when it must be looked at even without events.
  Clock::time_point add_to(std::vector<pollfd>& set) const {
    const auto now = Clock::now();
    const auto events = [&](const Flow& in, const Flow& out) {
      return static_cast<short>((in.wants_to_read() ? POLLIN : 0) |
                                (out.wants_to_write(now) ? POLLOUT : 0));
    };
    set.push_back({up_.from, events(up_, down_), 0});
    set.push_back({up_.to, events(down_, up_), 0});
    auto next = Clock::time_point::max();
    for (const Flow* flow : {&up_, &down_}) {
      if (!flow->chunks.empty() && flow->chunks.front().due > now) {
        next = std::min(next, flow->chunks.front().due);
      }
    }
    return next;
  }

  /// Moves what can be moved. False once the connection has ended.
  bool move(short client, short server) {
    return forward(up_, client, proxy_.up_) && forward(down_, server, proxy_.down_) && !is_over();
  }

 private:
  bool forward(Flow& flow, short events, std::atomic<std::size_t>& count) {
    if ((events & POLLERR) != 0) return false;
    if ((events & (POLLIN | POLLHUP)) != 0 && flow.wants_to_read() &&
        !read_into(flow, rule_.delay)) {
      return false;
    }
    while (!is_over() && flow.wants_to_write(Clock::now())) {
      const auto sent = write_from(flow, rule_.single_bytes);
      if (!sent) return false;
      count += *sent;
      if (*sent == 0) break;
    }
    if (flow.ended && flow.chunks.empty() && !flow.shut_down) {
      ::shutdown(flow.to, SHUT_WR);
      flow.shut_down = true;
    }
    return true;
  }

  [[nodiscard]] bool is_over() const noexcept {
    if (up_.is_cut() || down_.is_cut()) {
      if (!counted_) ++proxy_.cuts_;
      counted_ = true;
      return true;
    }
    return up_.shut_down && down_.shut_down;
  }

  TcpProxy& proxy_;
  const ProxyRule rule_;
  Flow up_;
  Flow down_;
  mutable bool counted_ = false;
};

TcpProxy::TcpProxy(std::uint16_t target)
    : target_(target), port_(free_server_port()), stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
  listen();
  thread_ = std::thread([this] { run(); });
}

TcpProxy::~TcpProxy() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_fd_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(listener_);
  ::close(stop_fd_);
}

void TcpProxy::set(const ProxyRule& rule) {
  const std::lock_guard lock(mutex_);
  rule_ = rule;
}

void TcpProxy::set_once(const ProxyRule& rule) {
  const std::lock_guard lock(mutex_);
  once_ = rule;
}

void TcpProxy::listen() {
  listener_ = make_socket();
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port_);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, SOMAXCONN) != 0) {
    throw std::runtime_error("TcpProxy: cannot listen on port " + std::to_string(port_));
  }
}

void TcpProxy::accept() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  send_at_once(client);
  const std::lock_guard lock(mutex_);
  const ProxyRule rule = once_.value_or(rule_);
  once_.reset();
  const int server = connect_to(target_);
  if (server < 0) {
    ::close(client);
    return;
  }
  open_.emplace_back(*this, client, server, rule);
  if (rule.cut_up == 0 || rule.cut_down == 0) open_.back().move(0, 0);
}

void TcpProxy::run() {
  std::vector<pollfd> set;
  for (;;) {
    set = {{stop_fd_, POLLIN, 0}, {listener_, POLLIN, 0}};
    auto next = Clock::time_point::max();
    for (const Connection& connection : open_) next = std::min(next, connection.add_to(set));
    timespec rest{};
    if (next != Clock::time_point::max()) {
      const auto span = std::max(next - Clock::now(), Clock::duration{0});
      rest.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(span).count();
      rest.tv_nsec = (span % std::chrono::seconds{1}).count();
    }
    ::ppoll(set.data(), set.size(), next == Clock::time_point::max() ? nullptr : &rest, nullptr);
    std::size_t i = 2;
    for (auto it = open_.begin(); it != open_.end(); i += 2) {
      it = it->move(set[i].revents, set[i + 1].revents) ? std::next(it) : open_.erase(it);
    }
    if ((set[1].revents & POLLIN) != 0) accept();
    if ((set[0].revents & POLLIN) != 0) break;
  }
  open_.clear();
}

}  // namespace sluice::test
