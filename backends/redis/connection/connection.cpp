// Connection: connects and logs in.
#include "backends/redis/connection/connection.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <stdexcept>

#include "backends/redis/connection/server_version.hpp"
#include "backends/redis/protocol/protocol.hpp"
#include "backends/redis/protocol/sentinel_replies.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Of a version that is told to the user.
constexpr std::size_t longest_version = 64;

RedisRole role_of(std::string_view text) noexcept {
  if (text == "master") return RedisRole::master;
  return text == "replica" || text == "slave" ? RedisRole::replica : RedisRole::unknown;
}

Errc refusal_of(const ServerReply& reply) noexcept {
  return reply.kind == ServerReply::Kind::error ? error_of(reply.text) : Errc{};
}

/// The text of an invalid reply.
std::string nonsense(std::string_view bytes) {
  if (bytes.starts_with("\x15\x03")) return "the server speaks TLS: see RedisOptions::tls";
  return "no reply of a Redis server: " + std::string(bytes.substr(0, bytes.find_first_of("\r\n")));
}

}  // namespace

Connection::Connection(asio::io_context& io, RedisOptions options, Names& names, Journal* journal)
    : options_(std::move(options)),
      names_(names),
      journal_(journal),
      endpoints_(std::in_place, options_, names_),
      transport_(io),
      watchdog_(io) {}

void Connection::set_target(const RedisAddress& target) {
  if (options_.unix_socket.empty() && target == this->target()) return;
  options_.host = target.host;
  options_.port = target.port;
  options_.unix_socket.clear();
  endpoints_.emplace(options_, names_);
}

void Connection::stop() noexcept {
  stopped_ = true;
  close();
}

void Connection::abandon() noexcept {
  is_abandoned_ = true;
  transport_.abort();
}

void Connection::step(RedisStep step) {
  step_ = step;
  if (journal_ != nullptr) journal_->note_attempt(step, address_);
}

/// What the server says, unless it may quote the login to which it replies.
std::string Connection::shown(std::string_view words) const {
  return login_ == nullptr ? std::string(words) : without_login(words, *login_);
}

/// Records why the current step has failed. Returns false.
bool Connection::fail(std::string_view cause, Errc code) {
  if (journal_ != nullptr && !stopped_) journal_->note_failure(step_, address_, cause, code);
  return false;
}

bool Connection::fail(const error_code& error) {
  if (is_late_) return fail(no_answer_within(options_.connect_timeout));
  if (is_abandoned_) return fail("given up for another server");
  ended_at_hello_ = is_at_hello_ && transport_.why().empty() &&
                    (error == asio::error::eof || error == asio::error::connection_reset);
  if (ended_at_hello_) return false;
  // Of TLS: the server may refuse the client's certificate after the handshake.
  if (const std::string why = transport_.why(); !why.empty()) return refuse(why, Errc::tls_failed);
  if (error == asio::error::eof) return fail("the server closed the connection");
  return fail(error.message());
}

bool Connection::refuse(std::string_view words, Errc code) {
  // No call was sent: none may fail with an error of Failure::unknown.
  const bool is_certain = make_error_code(code) == Failure::not_executed;
  if (is_certain) refusal_ = code;
  return fail(words, is_certain ? code : Errc::not_connected);
}

/// Starts a timeout of connect_timeout for the following steps. A watchdog that fires later, for an
/// older attempt or one whose Connection has ended since, sees another number and does nothing.
void Connection::watch_attempt() {
  is_late_ = false;
  watchdog_.expires_after(options_.connect_timeout);
  watchdog_.async_wait([this, attempts = attempts_, attempt = ++*attempts_](error_code error) {
    if (error || attempt != *attempts) return;
    is_late_ = true;
    transport_.abort();
  });
}

asio::awaitable<bool> Connection::connect() {
  refusal_ = Errc::not_connected;
  is_abandoned_ = false;
  bool ready = false;
  if (endpoints_->is_name()) {
    address_ = endpoints_->name();
    step(RedisStep::look_up);
  }
  const std::vector<Endpoint> endpoints = co_await endpoints_->list();
  if (!endpoints_->error().empty()) fail(endpoints_->error());
  for (const Endpoint& endpoint : endpoints) {
    if (journal_ != nullptr) journal_->tell();
    if (ready || stopped_ || is_abandoned_) break;
    endpoint_ = endpoint;
    address_ = text_of(endpoint);
    watch_attempt();
    ready = co_await try_address();
    if (!ready && !is_abandoned_) put_last();
  }
  ++*attempts_;
  watchdog_.cancel();
  if (journal_ != nullptr) journal_->tell();
  co_return ready && !stopped_ && !is_abandoned_;
}

/// twemproxy ends a connection at each command that it does not know. A server that does so at
/// HELLO and serves without it is asked once more, because it may have come up in between, and if
/// it does so again, for nothing but what calls need.
asio::awaitable<bool> Connection::try_address() {
  for (int attempt = 0; attempt < 4; ++attempt) {
    is_bare_ = attempt % 2 == 1;
    ended_at_hello_ = false;
    const bool ready = co_await try_once();
    if (ready && attempt != 1) co_return true;
    if (stopped_ || is_abandoned_ || (!ready && !ended_at_hello_)) break;
    transport_.abort();
  }
  co_return false;
}

asio::awaitable<bool> Connection::try_once() {
  step(RedisStep::connect);
  bool ready = co_await open();
  if (ready && options_.tls) {
    step(RedisStep::tls);
    ready = co_await secure();
  }
  if (ready) {
    step(RedisStep::login);
    reader_.reset();
    login_ = nullptr;
    ready = co_await shake_hands();
  }
  if (ready && !transport_.is_open()) ready = fail(error_code());
  if (!ready) transport_.abort();
  co_return ready;
}

asio::awaitable<bool> Connection::open() {
  const error_code error = co_await transport_.connect(endpoint_, options_.stall_timeout);
  co_return !error || fail(error);
}

asio::awaitable<bool> Connection::secure() {
  std::string cause;
  try {
    cause = co_await transport_.secure(*options_.tls, options_.host);
  } catch (const std::runtime_error& error) {  // a file
    cause = error.what();
  }
  if (is_late_) cause = no_answer_within(options_.connect_timeout);  // Redis, without TLS
  co_return cause.empty() || refuse(cause, Errc::tls_failed);
}

asio::awaitable<void> Connection::write(std::string command) {
  // The error is that of the next read: a server that rejects a client sends a reason, and closes.
  error_code ignored;
  co_await transport_.write_all(command, ignored);
  std::ranges::fill(command, '\0');  // it may hold a password
}

/// The received bytes; empty if the connection has failed.
asio::awaitable<std::string_view> Connection::read() {
  for (;;) {
    error_code error = co_await transport_.arrive();
    const std::string_view bytes = error ? std::string_view() : transport_.take(error);
    if (error) fail(error);
    if (error || !bytes.empty()) co_return bytes;
  }
}

/// Sends one command and returns its reply; `broken` if the attempt has failed.
asio::awaitable<ServerReply> Connection::ask(std::string command) {
  co_await write(std::move(command));
  for (;;) {
    const std::string_view bytes = co_await read();
    if (bytes.empty()) break;
    const bool sound = reader_.feed(bytes);
    const ServerReply reply = reader_.next();
    using Kind = ServerReply::Kind;
    const bool is_ours = reply.kind == Kind::error || (sound && reply.kind != Kind::integer);
    if (!is_ours) {
      fail(shown(nonsense(bytes)));
      break;
    }
    if (reply.kind != Kind::none) co_return reply;
  }
  co_return ServerReply{ServerReply::Kind::broken};
}

/// Logs in, one command at a time, so that a refused login cannot shift the replies to calls.
asio::awaitable<bool> Connection::shake_hands() {
  if (!co_await authenticate()) co_return false;
  server_ = {};
  if (!is_bare_ && !co_await check_server()) co_return false;
  for (Greeting& greeting : make_greetings(options_, is_bare_)) {
    if (!co_await say(std::move(greeting))) co_return false;
  }
  if (reader_.next().kind != ServerReply::Kind::none) co_return fail("a reply to nothing");
  co_return true;
}

asio::awaitable<bool> Connection::authenticate() {
  RedisCredentials credentials{options_.username, options_.password};
  if (options_.credentials) {
    try {
      credentials = options_.credentials();
    } catch (...) {  // whose text may hold a secret that nobody knows here
      co_return fail("RedisOptions::credentials threw an exception");
    }
  }
  login_ = &credentials;
  bool is_accepted = true;
  for (Greeting& greeting : make_authentication(credentials)) {
    is_accepted = is_accepted && co_await say(std::move(greeting));
  }
  login_ = nullptr;
  co_return is_accepted;
}

asio::awaitable<bool> Connection::say(Greeting greeting) {
  if (step_ != greeting.step) step(greeting.step);
  const ServerReply reply = co_await ask(std::move(greeting.command));
  if (reply.kind == ServerReply::Kind::broken) co_return false;
  const Errc refusal = refusal_of(reply);
  if (greeting.fails_on(refusal, has_others())) co_return refuse(shown(reply.text), refusal);
  co_return true;
}

/// Rejects a server whose version is too old for the scripts, and behind Sentinels a replica.
asio::awaitable<bool> Connection::check_server() {
  std::string command;
  append_command(command, {"HELLO", "2"});
  is_at_hello_ = !options_.sentinel && options_.cluster.empty();
  const ReplyValue* const reply = co_await exchange(std::move(command));
  is_at_hello_ = false;
  if (reply == nullptr) co_return false;
  const Hello hello = read_hello(*reply);
  if (hello.kind == Hello::Kind::nonsense) co_return fail("the reply to HELLO makes no sense");
  const Errc refusal = error_of(hello.error);
  if (refusal == Errc::too_many_clients) co_return refuse(hello.error, refusal);
  std::string role(hello.role);
  server_ = {role_of(role), {}};
  if (hello.kind == Hello::Kind::map && !accept_version(hello.server, hello.version)) {
    co_return false;
  }
  // A proxy, or older than 6.0, or HELLO is not permitted.
  if (hello.kind == Hello::Kind::error) {
    if (!co_await check_version_by_info()) co_return false;
  }
  if (!options_.sentinel) co_return true;
  co_return co_await check_role(std::move(role));
}

asio::awaitable<bool> Connection::check_version_by_info() {
  std::string info;
  append_command(info, {"INFO", "server"});
  const ServerReply reply = co_await ask(std::move(info));
  if (reply.kind == ServerReply::Kind::broken) co_return false;
  if (reply.kind != ServerReply::Kind::string) co_return true;
  co_return accept_version("", version_in_info(reply.text));
}

/// `role`: that in the reply to HELLO; without one, the server is asked.
asio::awaitable<bool> Connection::check_role(std::string role) {
  if (role.empty()) {
    std::string command;
    append_command(command, {"ROLE"});
    const ReplyValue* const reply = co_await exchange(std::move(command));
    if (reply == nullptr) co_return false;
    if (reply->kind == ReplyValue::Kind::error)
      co_return refuse(reply->text, error_of(reply->text));
    role = read_role(*reply);
    server_.role = role_of(role);
  }
  if (role == "master") co_return true;
  co_return refuse("the server's role is " + (role.empty() ? "unknown" : role) + ", not master",
                   Errc::read_only);
}

/// Sends one command whose reply may have any shape. Null if the attempt has failed.
asio::awaitable<const ReplyValue*> Connection::exchange(std::string command) {
  co_await write(std::move(command));
  array_.reset();
  for (;;) {
    const std::string_view bytes = co_await read();
    if (bytes.empty()) co_return nullptr;
    const ArrayReader::State state = array_.feed(bytes);
    if (state == ArrayReader::State::complete) co_return &array_.value();
    if (state == ArrayReader::State::incomplete) continue;
    fail(nonsense(bytes));
    co_return nullptr;
  }
}

asio::awaitable<const ReplyValue*> Connection::request(std::string command) {
  step(RedisStep::discover);
  watch_attempt();
  const ReplyValue* const reply = co_await exchange(std::move(command));
  ++*attempts_;
  watchdog_.cancel();
  if (reply == nullptr) transport_.abort();
  co_return reply;
}

bool Connection::accept_version(std::string_view server, std::string_view version) {
  server_.version = presentable(version.substr(0, longest_version));
  if (!is_too_old(version)) return true;
  return fail("the server is " + std::string(server.empty() ? "redis" : server) + " " +
              std::string(version) + ", which is older than 7.0");
}

}  // namespace sluice::redis_detail
