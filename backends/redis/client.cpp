// The traffic of one connection: calls, bytes, replies and deadlines.
#include "client.hpp"

#include <signal.h>

#include <algorithm>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "protocol.hpp"
#include "sluice/detail/uncancelled.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

thread_local const Client* running_here = nullptr;

/// Bounds times so that the timer's arithmetic in nanoseconds cannot overflow.
constexpr Span longest_sleep = std::chrono::hours{1};

/// The time between two checks of all deadlines: each visits all calls in flight, so that it grows
/// with their number, and the checks cost a few per cent of a core at most.
constexpr Span sleep_among(std::size_t calls) noexcept {
  return std::max(Span{1'000}, Span{static_cast<Word>(calls / 8)});
}

/// The most wake-ups that wait to be sent; more are dropped.
constexpr std::size_t max_notices = 1024;

/// The pause when the system is out of a resource.
constexpr Span breather = std::chrono::milliseconds{1};

/// The most ended calls whose memory is kept.
constexpr std::size_t max_pooled = 1024;
constexpr std::size_t max_pooled_bytes = 4096;

/// A bijection (the finalizer of SplitMix64), so that consecutive numbers become distinct nonces
/// that a confused server would not send by chance.
std::uint64_t scramble(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Client::Client(RedisOptions options, std::uint64_t seed, const Resolve& resolve)
    : options_(std::move(options)),
      key_style_{options_.key_prefix, options_.key_secret},
      nonce_(seed),
      work_(io_.get_executor()),
      link_(io_, options_, resolve, &journal_),
      subscriber_(io_, options_, resolve, scramble(seed)),
      pipeline_(options_.scripts, scramble(~seed)),
      pace_(options_.reconnect_min, options_.reconnect_max, seed) {}

Client::~Client() = default;

void Client::start() {
  // The new thread inherits the mask: it handles no signals of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([self = shared_from_this()] {
      running_here = self.get();
      self->run();
      running_here = nullptr;
    });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// After std::bad_alloc the connection may be out of step: it is closed, and sent calls end as
/// unknown. Waiting calls continue to wait, and connecting starts again.
void Client::run() {
  while (!closed_) {
    try {
      resume();
      io_.run();
    } catch (const std::exception& error) {
      note_loss(error.what());
      drop();
      if (stopping_.load()) close();
      if (!closed_) std::this_thread::sleep_for(breather);
    }
  }
}

/// Restarts the operations that must always be pending, after an exception.
void Client::resume() {
  if (!serving_) {
    asio::co_spawn(io_, serve(), asio::detached);
    serving_ = true;
  }
  expire();
}

void Client::stop() noexcept {
  if (on_io_thread()) {  // one of the store's own completions destroys it
    close();
    thread_.detach();
    return;
  }
  const detail::Uncancelled uncancelled;
  stopping_.store(true);
  wake_up();
  thread_.join();
}

bool Client::on_io_thread() const noexcept { return running_here == this; }

std::uint64_t Client::next_nonce() noexcept {
  return scramble(nonce_.fetch_add(1, std::memory_order_relaxed));
}

RedisStats Client::stats() const noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const Pipeline::Counters& counters = pipeline_.counters();
  RedisStats stats;
  stats.calls = calls_.load(relaxed);
  stats.connections = connections_.load(relaxed);
  stats.unknown = counters.unknown.load(relaxed);
  stats.late_replies = counters.late_replies.load(relaxed);
  stats.scripts_loaded = counters.scripts_loaded.load(relaxed);
  stats.protocol_errors = protocol_errors_.load(relaxed);
  stats.subscriptions = subscriber_.confirmed();
  if (is_forked()) return stats;  // another thread of the parent may have held the journal's lock
  stats.failed_attempts = journal_.failed_attempts();
  try {
    stats.last_failure = journal_.last_failure();
  } catch (const std::bad_alloc&) {
    return stats;
  }
  return stats;
}

std::shared_ptr<const std::string> Client::reason_of(const std::error_code& error) const noexcept {
  if (is_forked() || error.category() != error_category()) return nullptr;
  return journal_.reason_of(static_cast<Errc>(error.value()));
}

void Client::take_spare(CallList& spare, std::size_t count) noexcept {
  const std::lock_guard lock(mutex_);
  while (spare.size() < count && !pool_.empty()) spare.push_back(pool_.pop_front());
}

CallPtr Client::new_call(CallList& spare, std::size_t wanted) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  const std::size_t before = in_flight_.fetch_add(1);
  InFlight in_flight(in_flight_);
  if (before >= options_.max_in_flight) return nullptr;
  if (spare.empty()) take_spare(spare, wanted);
  CallPtr call = spare.empty() ? std::make_unique<Call>() : spare.pop_front();
  call->in_flight = std::move(in_flight);
  return call;
}

void Client::wake_up() noexcept {
  if (woken_.exchange(true)) return;
  const detail::Uncancelled uncancelled;
  asio::post(io_, asio::bind_allocator(WakeAllocator<char>(wake_memory_), [this] { wake(); }));
}

void Client::watch(Call& call, const StopToken& stop) {
  if (!stop.stop_possible()) return;
  const auto wake = [](void* client) noexcept {
    auto* const self = static_cast<Client*>(client);
    if (self->is_forked()) return;  // the I/O thread does not exist here, and its locks may be held
    self->any_cancelled_.store(true);
    self->wake_up();
  };
  call.on_stop.emplace(stop, StopHook{&call.cancelled, wake, this});
}

/// One subscription to a channel. It may outlive the store, and keeps the client alive.
class Client::ChannelWatch final : public Subscription {
 public:
  ChannelWatch(std::shared_ptr<Client> client, std::string channel, std::function<void()> seen)
      : client_(std::move(client)),
        channel_(std::move(channel)),
        watch_(client_->subscriber_.channels().watchers().subscribe(channel_, std::move(seen))) {
    client_->subscriber_.channels().add(channel_);
  }
  ~ChannelWatch() override {
    if (client_->is_forked()) {  // must not touch the parent's locks and memory
      static_cast<void>(watch_.release());
      new std::shared_ptr<Client>(std::move(client_));
      return;
    }
    watch_.reset();
    client_->subscriber_.channels().remove(channel_);
    tell();
  }
  void tell() noexcept {
    client_->watched_anew_.store(true);
    client_->wake_up();
  }

 private:
  std::shared_ptr<Client> client_;
  std::string channel_;
  std::unique_ptr<Subscription> watch_;
};

std::unique_ptr<Subscription> Client::watch_channel(std::string channel,
                                                    std::function<void()> seen) {
  auto watch =
      std::make_unique<ChannelWatch>(shared_from_this(), std::move(channel), std::move(seen));
  watch->tell();
  return watch;
}

void Client::notify(std::string channel) {
  {
    const std::lock_guard lock(mutex_);
    const bool again = !notices_.empty() && notices_.back() == channel;
    if (closed_inbox_ || again || notices_.size() >= max_notices) return;
    notices_.push_back(std::move(channel));
  }
  any_notice_.store(true);
  wake_up();
}

void Client::submit(std::span<CallPtr> calls) noexcept {
  if (calls.empty() || write_if_idle(calls)) return;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_inbox_) {
      for (CallPtr& call : calls) inbox_.push_back(std::move(call));
    }
  }
  for (CallPtr& refused : calls) {
    if (!refused) continue;
    refused->leave();
    refused->done.fail(Errc::shut_down);
  }
  wake_up();
}

/// Writes on the caller's thread instead of waking the I/O thread. That thread is still woken if it
/// sleeps for longer than the calls' timeouts, and it handles errors and partial writes. False if
/// nothing was done.
bool Client::write_if_idle(std::span<CallPtr> calls) noexcept {
  if (on_io_thread()) return false;  // it writes after it has processed all that it has read
  std::unique_lock wire(wire_, std::try_to_lock);
  if (!wire || !is_idle()) return false;
  // Later marks find their calls in the pipeline.
  const auto is_marked = [](const CallPtr& call) { return call->cancelled.load(); };
  if (std::ranges::any_of(calls, is_marked)) return false;
  const Time now = clock_.now();
  Time due = now + options_.stall_timeout;
  for (CallPtr& call : calls) {
    due = std::min(due, call->deadline);
    pipeline_.submit(std::move(call));
  }
  std::size_t taken = 0;
  try {
    const detail::Uncancelled uncancelled;
    pipeline_.flush(out_, now);
    error_code ignored;  // the next read finds it
    taken = link_.transport().write(out_, ignored);
  } catch (const std::bad_alloc&) {  // nothing was sent
  }
  note_taken(taken);
  if (due < armed_until_) due_ = std::min(due_, due);
  const bool must_write = !out_.empty() || link_.transport().has_unsent();
  const bool must_wake = due < armed_until_ || must_write || pipeline_.has_unsent();
  wire.unlock();  // the other thread takes it first
  if (must_wake) wake_up();
  return true;
}

/// True if there is a connection without pending or waiting requests. The I/O thread writes several
/// callers' requests together, which is more efficient.
bool Client::is_idle() noexcept {
  const bool busy = !out_.empty() || pipeline_.has_sent() || pipeline_.has_unsent();
  if (!connected_ || draining_ || busy || link_.transport().has_unsent()) return false;
  const std::lock_guard lock(mutex_);
  return inbox_.empty();
}

void Client::wake() {
  woken_.store(false);  // first: later calls wake the thread again
  const std::lock_guard wire(wire_);
  if (stopping_.load()) return close();
  if (!serving_ && !closed_) resume();
  drain_inbox();
  if (any_notice_.exchange(false)) drain_notices();
  if (any_cancelled_.exchange(false)) cancel_marked();
  if (closed_) pipeline_.abandon(Errc::shut_down);
  if (watched_anew_.exchange(false)) subscriber_.update();
  arm(std::exchange(due_, Time::max()));
  flush();
}

/// Moves the calls to the pipeline. Returns their earliest deadline.
Time Client::take_inbox() noexcept {
  CallList arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(inbox_);
  }
  Time earliest = Time::max();
  bool marked = false;
  while (!arrived.empty()) {
    CallPtr call = arrived.pop_front();
    marked =
        marked || call->cancelled.load();  // it may have been marked before it was in the inbox
    earliest = std::min(earliest, call->deadline);
    pipeline_.submit(std::move(call));
  }
  if (marked) cancel_marked();
  return earliest;
}

/// A call whose deadline has passed is not sent.
void Client::drain_inbox() {
  const Time earliest = take_inbox();
  if (earliest <= clock_.now()) return expire();
  arm(earliest);
}

void Client::drain_notices() noexcept try {
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(mutex_);
    notices.swap(notices_);
  }
  if (!connected_ || draining_) return;
  for (std::string& channel : notices) pipeline_.notify(std::move(channel));
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

void Client::cancel_marked() noexcept {
  pipeline_.cancel_marked();
  recycle();
}

/// Writes directly as much as the socket takes, which is usually all, and lets Asio wait only for
/// the rest: an asynchronous write would poll all sockets for each batch.
void Client::flush() {
  while (connected_ && !writing_) {
    const bool has_calls = !draining_ && pipeline_.has_unsent();
    if (out_.empty() && has_calls) pipeline_.flush(out_, clock_.now());
    if (out_.empty() && !link_.transport().has_unsent()) return;
    error_code error;
    const std::string_view rest = std::string_view(out_).substr(written_);
    const std::size_t taken = link_.transport().write(rest, error);
    if (error && error != asio::error::would_block) {
      note_loss(error);
      return drop();
    }
    note_taken(taken);
    if (pipeline_.has_sent()) arm(pipeline_.oldest_sent() + options_.stall_timeout);
    if (error) wait_to_write();
  }
}

/// The socket took `bytes` more of out_. A request of which it took no byte waits again, so that it
/// can time out or be cancelled, and survives the end of the connection.
void Client::note_taken(std::size_t bytes) noexcept {
  pipeline_.took(out_, bytes);
  written_ += bytes;
  if (written_ < out_.size()) return;
  out_.clear();
  written_ = 0;
}

void Client::wait_to_write() {
  writing_ = true;
  link_.transport().wait_writable([this, epoch = epoch_](error_code error) {
    if (epoch != epoch_) return;
    const std::lock_guard wire(wire_);
    writing_ = false;
    if (error) {
      note_loss(error);
      return drop();
    }
    flush();
  });
}

/// Returns the memory of ended calls to the callers' pool.
void Client::recycle() noexcept {
  CallList& ended = pipeline_.ended();
  if (!ended.empty()) {
    const std::lock_guard lock(mutex_);
    while (!ended.empty()) {
      CallPtr call = ended.pop_front();
      if (pool_.size() >= max_pooled || call->request.tail.capacity() > max_pooled_bytes) continue;
      call->renew();
      pool_.push_front(std::move(call));  // reuses the most recently used memory first
    }
  }
}

void Client::drop(Errc oldest) noexcept {
  const std::lock_guard wire(wire_);
  if (!connected_) return;
  connected_ = false;
  writing_ = false;
  out_.clear();
  written_ = 0;
  draining_ = false;
  ++epoch_;
  link_.close();
  pace_.ended(clock_.now(), loss_ && is_unfit(*loss_));
  last_failure_ = loss_.value_or(Errc::not_connected);
  pipeline_.disconnect(oldest);
  recycle();
}

/// Records why the connection is closed: the first cause counts. `word`: the error of calls until
/// there is another connection.
void Client::note_loss(std::string_view cause, Errc word) noexcept {
  if (!connected_ || loss_) return;
  loss_ = word;
  journal_.note_loss(link_.address(), cause, word);
}

void Client::note_loss(const error_code& error) noexcept try {
  const std::string why = link_.transport().why();
  if (!why.empty()) return note_loss(why);
  note_loss(error == asio::error::eof ? "the server closed the connection" : error.message());
} catch (const std::bad_alloc&) {
  return;
}

/// Leaves a server that cannot decide for the next address, if there is one; for some errors the
/// pipeline leaves it in any case, because the name may have moved to another server.
void Client::leave_if_unfit(std::string_view words) {
  const Errc word = error_of(words);
  if (!is_unfit(word) || (word == Errc::loading && !link_.has_others())) return;
  draining_ = true;
  link_.put_last();
  note_loss(words, word);
}

/// Handles every reply that is complete. False if the connection must be dropped.
bool Client::hear_all() {
  while (connected_) {
    const ServerReply reply = link_.reader().next();
    if (reply.kind == ServerReply::Kind::none) return true;
    auto heard = Pipeline::Heard::nonsense;
    if (reply.kind == ServerReply::Kind::string) {
      heard = pipeline_.hear_string(reply.text);
    } else if (reply.kind == ServerReply::Kind::error) {
      leave_if_unfit(reply.text);  // first, so that the failing call has the reason
      heard = pipeline_.hear_error(reply.text, clock_.now());
    } else if (reply.kind == ServerReply::Kind::integer) {
      heard = pipeline_.hear_integer();
    }
    if (heard == Pipeline::Heard::nonsense) return false;
    if (heard == Pipeline::Heard::reconnect) draining_ = true;
  }
  return true;
}

/// An object of the coroutine: however that ends, it is restarted.
struct Client::Serving {
  explicit Serving(Client& owner) noexcept : client(owner) {}
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  ~Serving() {
    client.serving_ = false;
    if (!client.closed_) client.wake_up();
  }
  Client& client;
};

asio::awaitable<void> Client::serve() {
  const Serving serving(*this);
  while (!closed_) {
    try {
      co_await serve_once();
    } catch (const std::exception& error) {
      note_loss(error.what());
      drop();
      expire();  // the exception may have lost the timer
    }
    if (!closed_) journal_.tell();
    if (!closed_) co_await pause();
  }
}

/// One connection, from the attempt to its end.
asio::awaitable<void> Client::serve_once() {
  pace_.attempt(clock_.now());
  if (!co_await link_.connect()) {
    last_failure_ = link_.refusal();
    co_return;
  }
  pace_.connected(clock_.now());
  connections_.fetch_add(1, std::memory_order_relaxed);
  journal_.note_connection(link_.address());
  {
    const std::lock_guard wire(wire_);
    connected_ = true;
    loss_.reset();
    drain_inbox();
    arm(pipeline_.next_resumption());  // for calls in a pause since the last connection
    flush();
  }
  journal_.tell();
  co_await read_replies();
}

asio::awaitable<void> Client::pause() {
  pause_.expires_after(pace_.pause(clock_.now()));
  error_code ignored;
  co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> Client::read_replies() {
  while (connected_) {
    error_code error = co_await link_.transport().arrive();
    const std::lock_guard wire(wire_);
    const std::string_view bytes = error ? std::string_view() : link_.transport().take(error);
    if (error) {
      note_loss(error);
      drop();  // before a caller sees it idle
    }
    if (!connected_) break;
    // The replies before the first invalid byte are valid.
    const bool sound = link_.reader().feed(bytes);
    const bool heard = hear_all();
    if (!heard || (!sound && connected_)) {
      protocol_errors_.fetch_add(1, std::memory_order_relaxed);
      link_.put_last();
      note_loss("an answer that makes no sense");
      drop(heard ? Errc::protocol_error : Errc::unknown);
      break;
    }
    recycle();
    if (pipeline_.has_decided()) {
      pace_.decided();
      journal_.note_decision();
    }
    arm(pipeline_.next_resumption());
    if (draining_ && !pipeline_.has_sent()) break;
    flush();
  }
  drop();
}

void Client::arm(Time at) {
  if (at >= armed_until_) return;
  armed_until_ = at;
  arm_expiry(Span{0});
}

void Client::arm_expiry(Span least) {
  expiry_.expires_after(std::clamp(armed_until_ - clock_.now(), least, longest_sleep));
  expiry_.async_wait([this](error_code error) {
    if (!error) expire();
  });
}

void Client::expire() {
  const std::lock_guard wire(wire_);
  const Time now = clock_.now();
  static_cast<void>(take_inbox());
  pipeline_.expire(now, connected_ ? Errc::timed_out : last_failure_);
  recycle();
  if (pipeline_.has_sent() && pipeline_.oldest_sent() + options_.stall_timeout <= now) {
    link_.put_last();
    note_loss(no_answer_within(options_.stall_timeout));
    drop();
  }
  armed_until_ = pipeline_.next_deadline();
  if (pipeline_.has_sent()) {
    armed_until_ = std::min(armed_until_, pipeline_.oldest_sent() + options_.stall_timeout);
  }
  if (armed_until_ != Time::max()) arm_expiry(sleep_among(in_flight_.load()));
  flush();
}

void Client::close() noexcept {
  const std::lock_guard wire(wire_);
  closed_ = true;
  {
    const std::lock_guard lock(mutex_);
    closed_inbox_ = true;
  }
  static_cast<void>(take_inbox());
  drop();
  pipeline_.abandon(Errc::shut_down);
  recycle();
  journal_.stop();
  link_.stop();
  subscriber_.stop();
  work_.reset();
  io_.stop();
}

}  // namespace sluice::redis_detail
