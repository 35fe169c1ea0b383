#include "tests/redis/topology/simulated.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

#include "backends/redis/protocol/hash_slot.hpp"
#include "sluice/extend/conclude.hpp"
#include "tests/catch.hpp"

namespace sluice::test {
namespace {

using boost::system::error_code;
using net::local::stream_protocol;

constexpr std::int64_t ms_in_ns = 1'000'000;

std::atomic<bool> is_simulated{false};
std::atomic<std::int64_t> now_ns{0};
std::map<std::uint32_t, int> attempts;  // to connect, by address

/// Of the abstract namespace: it needs no file.
std::string path_of(std::uint32_t address, std::uint16_t port) {
  return std::string(1, '\0') + "sluice-" + std::to_string(::getpid()) + "-" +
         std::to_string(address) + "-" + std::to_string(port);
}

}  // namespace
}  // namespace sluice::test

using namespace sluice::test;

extern "C" {

int clock_gettime(clockid_t id, timespec* time) noexcept {
  const bool is_of_the_process = id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID;
  if (!is_simulated || is_of_the_process) {
    return static_cast<int>(::syscall(SYS_clock_gettime, id, time));
  }
  constexpr std::int64_t second = 1'000'000'000;
  time->tv_sec = now_ns / second;
  time->tv_nsec = now_ns % second;
  return 0;
}

/// Asio then has the timers in epoll's timeout.
int timerfd_create(int clock, int flags) noexcept {
  if (!is_simulated) return static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
  errno = ENOSYS;
  return -1;
}

int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
  const auto wait = [&](int ms) {
    return static_cast<int>(::syscall(SYS_epoll_pwait, fd, events, most, ms, nullptr, 8));
  };
  if (!is_simulated) return wait(timeout);
  if (const int ready = wait(0); ready != 0 || timeout == 0) return ready;
  if (timeout < 0) return wait(timeout);
  now_ns += timeout * ms_in_ns;
  return 0;
}

int socket(int domain, int type, int protocol) noexcept {
  if (is_simulated && domain == AF_INET) domain = AF_UNIX;
  return static_cast<int>(::syscall(SYS_socket, domain, type, protocol));
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  if (!is_simulated || address->sa_family != AF_INET) {
    return static_cast<int>(::syscall(SYS_connect, fd, address, size));
  }
  sockaddr_in wanted{};
  std::memcpy(&wanted, address, sizeof wanted);
  ++attempts[ntohl(wanted.sin_addr.s_addr)];
  const std::string path = path_of(ntohl(wanted.sin_addr.s_addr), ntohs(wanted.sin_port));
  sockaddr_un unix_address{};
  unix_address.sun_family = AF_UNIX;
  path.copy(unix_address.sun_path, sizeof unix_address.sun_path);
  return static_cast<int>(
      ::syscall(SYS_connect, fd, &unix_address, offsetof(sockaddr_un, sun_path) + path.size()));
}

}  // extern "C"

namespace sluice::test {

Simulation::Simulation() {
  now_ns = 1'000'000 * ms_in_ns;
  attempts.clear();
  is_simulated = true;
}

Simulation::~Simulation() { is_simulated = false; }

void Session::send(std::string_view reply) {
  error_code ignored;
  socket.write_some(net::buffer(reply), ignored);
}

SimulatedServer::SimulatedServer(net::io_context& io, unsigned number)
    : io_(io), host_("10.0.0." + std::to_string(number)) {
  set(State::up);
}

void SimulatedServer::set(State state) {
  if (state == State::down) {
    if (acceptor_) acceptor_->close();
    acceptor_.reset();
    cut();
  } else if (state_ == State::down) {
    listen();
  }
  state_ = state;
}

void SimulatedServer::cut() {
  for (const auto& each : std::exchange(sessions_, {})) {
    if (const auto session = each.lock()) session->socket.close();
  }
}

int SimulatedServer::attempts() const {
  return test::attempts[net::ip::make_address_v4(host_).to_uint()];
}

bool SimulatedServer::has(bool Session::*what) const {
  return std::ranges::any_of(sessions_, [what](const auto& each) {
    const auto session = each.lock();
    return session && (*session).*what && session->socket.is_open();
  });
}
bool SimulatedServer::has_listener() const { return has(&Session::listens); }
bool SimulatedServer::has_caller() const { return has(&Session::has_called); }

bool SimulatedServer::publish(std::string_view channel) {
  bool is_heard = false;
  for (const auto& each : sessions_) {
    const auto session = each.lock();
    if (!session || !session->listens) continue;
    session->send("*3\r\n" + bulk("message") + bulk(channel) + bulk("news"));
    is_heard = true;
  }
  return is_heard;
}

void SimulatedServer::listen() {
  const auto address = net::ip::make_address_v4(host_).to_uint();
  acceptor_ = std::make_shared<stream_protocol::acceptor>(
      io_, stream_protocol::endpoint(path_of(address, 6379)));
  net::co_spawn(io_, accept(acceptor_), net::detached);
}

net::awaitable<void> SimulatedServer::accept(std::shared_ptr<stream_protocol::acceptor> acceptor) {
  for (;;) {
    const auto session = std::make_shared<Session>(io_);
    error_code error;
    co_await acceptor->async_accept(session->socket,
                                    net::redirect_error(net::use_awaitable, error));
    if (error) co_return;
    std::erase_if(sessions_, [](const auto& each) { return each.expired(); });
    sessions_.push_back(session);
    net::co_spawn(io_, serve(session), net::detached);
  }
}

net::awaitable<void> SimulatedServer::serve(std::shared_ptr<Session> session) {
  net::steady_timer pause(io_);
  char chunk[4096];
  for (;;) {
    error_code error;
    const std::size_t size = co_await session->socket.async_read_some(
        net::buffer(chunk), net::redirect_error(net::use_awaitable, error));
    if (error) co_return;
    session->bytes.append(chunk, size);
    for (;;) {
      if (latency_ > Span{0} && !session->bytes.empty()) {
        pause.expires_after(latency_);
        co_await pause.async_wait(net::redirect_error(net::use_awaitable, error));
      }
      while (state_ == State::hung && session->socket.is_open()) {
        pause.expires_after(5ms);
        co_await pause.async_wait(net::redirect_error(net::use_awaitable, error));
      }
      if (!session->socket.is_open()) co_return;
      const auto command = take_command(session->bytes);
      if (!command) break;
      const std::string said = reply(*command, *session);
      if (said.empty()) co_return;  // closes
      session->send(said);
    }
  }
}

std::string SimulatedServer::reply(const Command& command, Session& session) {
  const std::string& name = command.at(0);
  if (name == "PING") {
    if (session.listens) return "*2\r\n" + bulk("pong") + bulk("");
    return "+PONG\r\n";
  }
  if (name == "AUTH" && !accepts(command)) return "-WRONGPASS no\r\n";
  if (name == "HELLO" || name == "AUTH" || name == "CLIENT") return "+OK\r\n";
  if (name == "SUBSCRIBE") {
    session.listens = true;
    return "*3\r\n" + bulk("subscribe") + bulk(command.at(1)) + ":1\r\n";
  }
  session.has_called = session.has_called || is_call(command);
  return answer(command, session);
}

redis_detail::StartLookUp SimulatedNames::starter() {
  return [this](const std::string& host, std::uint16_t port, std::function<void(Found)> done) {
    Found found;
    const auto known = addresses_.find(host);
    if (known == addresses_.end() || fails_) {
      found.error = "no such name";
    } else {
      found.endpoints.emplace_back(
          net::ip::tcp::endpoint(net::ip::make_address(known->second.host), port));
    }
    const auto timer = std::make_shared<net::steady_timer>(io_, delay_);
    timer->async_wait([timer, found, done = std::move(done)](error_code error) {
      if (!error) done(found);
    });
  };
}

SimulatedStore::SimulatedStore(net::io_context& io, RedisOptions options,
                               redis_detail::StartLookUp look_up, std::uint64_t seed)
    : io_(io),
      options_(std::move(options)),
      names_(io, std::move(look_up)),
      topology_(
          redis_detail::make_topology({io_, options_, names_, clock_, journal_, inbox_,
                                       [this]() noexcept { net::post(io_, [this] { work(); }); }},
                                      seed)) {
  topology_->start();
}

SimulatedStore::~SimulatedStore() {
  is_stopped_ = true;
  journal_.stop();
  topology_->stop();
  io_.poll();
}

void SimulatedStore::work() {
  for (std::size_t i = 0; i < topology_->size() && !is_stopped_; ++i) topology_->link(i).work();
}

std::size_t SimulatedStore::ask(std::string_view tag, Span within) {
  const std::size_t number = answers_.size();
  Answer& answer = *answers_.emplace_back(std::make_unique<Answer>());
  answer.asked = clock_.now();
  answer.deadline = answer.asked + within;
  auto call = std::make_unique<Call>();
  const Step step = bucket_step(tag);
  call->nonce = number;
  call->deadline = answer.deadline;
  call->steps = 1;
  call->asked[0] = AskedStep(step);
  redis_detail::encode(call->request, {&step, 1}, number, {});
  if (!options_.cluster.empty()) call->slot = redis_detail::hash_slot(call->request.tail);
  call->done = {[](void* to, const Outcome& outcome) noexcept {
                  auto* const told = static_cast<Answer*>(to);
                  ++told->answers;
                  told->ended = SystemClock().now();
                  told->error = outcome.error;
                },
                &answer};
  redis_detail::Link& link = topology_->link_of(call->slot);
  link.submit(std::move(call));
  link.work();  // no other: a link that has work must know by itself
  return number;
}

void pass(net::io_context& io, Span span) {
  const SystemClock clock;
  const Time end = clock.now() + span;
  net::steady_timer timer(io, span);
  timer.async_wait([](error_code) {});
  while (clock.now() < end) io.run_one();
}

void SimulatedWorld::after(Span delay, std::function<void()> act) {
  const auto timer = std::make_shared<net::steady_timer>(io, delay);
  timer->async_wait([timer, act = std::move(act)](error_code) { act(); });
}

void SimulatedWorld::load(Span span) {
  for (const Time end = clock_.now() + span; clock_.now() < end;) {
    observe();
    ask();
    pass(io, 20ms);
    observe();
    look();
  }
}

/// Some shards are asked for less often than others.
void SimulatedWorld::ask() {
  const std::size_t shard = below(1 + below(shards_.size()));
  asked_.push_back({shard, way_of(shard), shards_[shard].found, shards_[shard].is_known});
  store_->ask(tag_of(shard), one_in(5) ? 100ms : 500ms);
}

void SimulatedWorld::observe() {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].way != way_of(i)) touch(i);
    if (!is_steady(i)) shake(i);
    if (!is_settled(i)) unsettle(i);
  }
  if (asked_.empty()) return;
  const auto& answer = store_->answer(asked_.size() - 1);
  Shard& shard = shards_[asked_.back().shard];
  const bool is_right = ways_[asked_.size() - 1].executed == std::vector{shard.way.back()};
  if (answer.answers == 1 && is_right && answer.asked > shard.steady + 100ms) shard.is_known = true;
}

void SimulatedWorld::touch(std::size_t shard) {
  shards_[shard].way = way_of(shard);
  for_waiting(shard, [&](Asked& call) { call.way = shards_[shard].way; });
  shake(shard);
  unsettle(shard);
}

void SimulatedWorld::shake(std::size_t shard) {
  shards_[shard].steady = clock_.now();
  shards_[shard].is_known = false;
  for_waiting(shard, [](Asked& call) { call.is_known = false; });
}

void SimulatedWorld::unsettle(std::size_t shard) {
  const Time found = std::max(shards_[shard].found, clock_.now() + search());
  shards_[shard].found = found;
  for_waiting(shard, [found](Asked& call) { call.found = found; });
}

void SimulatedWorld::for_waiting(std::size_t shard, const std::function<void(Asked&)>& act) {
  const Time now = clock_.now();
  for (std::size_t i = asked_.size(); i-- > 0 && store_->answer(i).deadline + 500ms > now;) {
    if (asked_[i].shard == shard && store_->answer(i).answers == 0) act(asked_[i]);
  }
}

void SimulatedWorld::calm(Span within) {
  load(within);
  const std::size_t first = asked_.size();
  load(1s);
  pass(io, 1s);
  for (std::size_t i = first; i < asked_.size(); ++i) {
    CAPTURE(i, store_->answer(i).error.message());
    const bool is_moving = asked_[i].way.size() > 1;
    if (is_moving && store_->answer(i).error == Errc::try_again) continue;
    REQUIRE(!store_->answer(i).error);
    REQUIRE(ways_[i].executed == std::vector{asked_[i].way.back()});
  }
}

void SimulatedWorld::judge() {
  pass(io, 1s);
  for (std::size_t i = 0; i < asked_.size(); ++i) judge(i);
}

void SimulatedWorld::judge(std::size_t call) {
  const SimulatedStore::Answer& answer = store_->answer(call);
  const Asked& asked = asked_[call];
  auto [servers, executed] = ways_[call];
  CAPTURE(call, asked.shard, asked.way, servers, answer.error.message());
  CAPTURE((answer.ended - answer.asked) / 1ms, (asked.found - answer.asked) / 1ms);
  REQUIRE(answer.answers == 1);
  REQUIRE(answer.ended <= answer.deadline + 5ms);
  REQUIRE(executed.size() <= 1);
  if (!answer.error) REQUIRE(executed.size() == 1);
  if (answer.error == Failure::not_executed) REQUIRE(executed.empty());

  const bool is_moving = asked.way.size() > 1;
  if (is_moving && answer.error == Errc::try_again) return;
  if (answer.asked >= asked.found) REQUIRE(!answer.error);
  const Time due = std::max(answer.asked + 100ms, asked.found);
  const bool is_lost = answer.error == Failure::unknown;
  if (!is_moving && !is_lost && due <= answer.deadline) REQUIRE(answer.ended <= due + 5ms);
  if (!asked.is_known) return;
  REQUIRE(!answer.error);
  servers.erase(std::ranges::unique(servers).begin(), servers.end());
  // An importing node is left when the map changes, and its calls begin anew.
  const auto size = std::ssize(asked.way);
  while (is_moving && std::ssize(servers) > size &&
         std::equal(asked.way.begin(), asked.way.end(), servers.begin())) {
    servers.erase(servers.begin(), servers.begin() + size);
  }
  REQUIRE(servers == asked.way);
}

}  // namespace sluice::test
