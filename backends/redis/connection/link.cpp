// The traffic of one connection: calls, bytes, replies and deadlines.
#include "backends/redis/connection/link.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "backends/redis/connection/login.hpp"
#include "backends/redis/protocol/protocol.hpp"
#include "sluice/detail/uncancelled.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Bounds times so that the timer's arithmetic in nanoseconds cannot overflow.
constexpr Span longest_sleep = std::chrono::hours{1};

/// The time between two checks of all deadlines: each visits all calls of the link, so that it
/// grows with their number, and the checks cost a few per cent of a core at most.
constexpr Span sleep_among(std::size_t calls) noexcept {
  return std::max(Span{1'000}, Span{static_cast<Word>(calls / 8)});
}

}  // namespace

Link::Link(const LinkContext& context, LinkOwner& owner, std::uint64_t seed, unsigned index)
    : context_(context),
      owner_(owner),
      index_(index),
      connection_(context.io, context.options, context.names, &context.journal),
      pause_(context.io),
      expiry_(context.io),
      pipeline_(context.options.scripts, seed, !context.options.cluster.empty()),
      pace_(context.options.reconnect_min, context.options.reconnect_max, seed) {}

/// An object of the coroutine: however that ends, the link is opened again if it is needed.
class Link::Serving {
 public:
  Serving(std::shared_ptr<Life> life, const std::function<void()>& wake_up)
      : life_(std::move(life)), wake_up_(wake_up) {}
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  ~Serving() {
    life_->is_serving = false;
    if (!life_->is_stopped) wake_up_();
  }

 private:
  std::shared_ptr<Life> life_;
  const std::function<void()>& wake_up_;
};

void Link::open() {
  if (life_->is_serving || life_->is_stopped) return;
  asio::co_spawn(context_.io, serve(), asio::detached);
  life_->is_serving = true;
}

asio::awaitable<void> Link::serve() {
  const Serving serving(life_, context_.wake_up);
  while (!life_->is_stopped) {
    try {
      co_await serve_once();
    } catch (const std::exception& error) {
      note_loss(error.what());
      drop();
      expire();  // the exception may have lost the timer
    }
    if (!life_->is_stopped) context_.journal.tell();
    if (!life_->is_stopped) owner_.note_ended(*this);
    if (life_->is_stopped || !owner_.is_needed(*this)) break;
    co_await pause();
  }
}

/// One connection, from the attempt to its end.
asio::awaitable<void> Link::serve_once() {
  pace_.attempt(context_.clock.now());
  is_to_connect_anew_ = false;
  const Errc failure = co_await owner_.connect(*this);
  if (failure != Errc{}) {
    last_failure_ = failure;
    co_return;
  }
  pace_.connected(context_.clock.now());
  connections_.fetch_add(1, std::memory_order_relaxed);
  context_.journal.note_connection(connection_.address());
  note_server();
  {
    const std::lock_guard wire(wire_);
    pipeline_.begin(connection_.is_bare());
    heard_ = context_.clock.now();
    connected_ = true;
    is_connected_.store(true);
    loss_.reset();
    arm(pipeline_.next_resumption());  // for calls in a pause since the last connection
    flush();
  }
  context_.journal.tell();
  co_await read_replies();
}

asio::awaitable<void> Link::pause() {
  if (is_to_connect_anew_) co_return;
  pause_.expires_after(pace_.pause(context_.clock.now()));
  error_code ignored;
  co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> Link::read_replies() {
  while (connected_) {
    const error_code arrival = co_await connection_.transport().arrive();
    take_replies(arrival);
    pass_on();
    const std::lock_guard wire(wire_);
    if (draining_ && !pipeline_.has_sent()) break;
    flush();
  }
  drop();
}

/// Handles what has arrived, or the end of the connection.
void Link::take_replies(error_code error) {
  const std::lock_guard wire(wire_);
  const std::string_view bytes = error ? std::string_view() : connection_.transport().take(error);
  if (error) {
    note_loss(error);
    drop();  // before a caller sees it idle
  }
  if (connected_) hear(bytes);
}

/// Under no lock, since the owner gives calls to other links: no thread holds the locks of two.
void Link::pass_on() {
  CallList redirected;
  bool is_failing = false;
  {
    const std::lock_guard wire(wire_);
    redirected.swap(pipeline_.redirected());
    is_failing = pipeline_.take_failing();
  }
  if (!redirected.empty()) owner_.redirect(*this, redirected);
  if (is_failing) owner_.note_failing(*this);
}

/// Handles received bytes.
void Link::hear(std::string_view bytes) {
  // The replies before the first invalid byte are valid.
  const Time now = heard_ = context_.clock.now();
  const bool sound = connection_.reader().feed(bytes);
  const bool heard = hear_all(now);
  if (!heard || (!sound && connected_)) {
    protocol_errors_.fetch_add(1, std::memory_order_relaxed);
    connection_.put_last();
    note_loss("an answer that makes no sense");
    return drop(heard ? Errc::protocol_error : Errc::unknown);
  }
  context_.inbox.recycle(pipeline_.ended());
  if (pipeline_.has_decided()) {
    pace_.decided();
    context_.journal.note_decision();
  }
  note_info();
  arm(pipeline_.next_resumption());
}

/// Handles every reply that is complete. False if the connection must be dropped.
bool Link::hear_all(Time now) {
  while (connected_) {
    const Time sent = pipeline_.has_sent() ? pipeline_.oldest_sent() : now;
    const ServerReply reply = connection_.reader().next();
    if (reply.kind == ServerReply::Kind::none) return true;
    auto heard = Pipeline::Heard::nonsense;
    if (reply.kind == ServerReply::Kind::string) {
      heard = pipeline_.hear_string(reply.text);
      latencies_.record(now - sent, now);
    } else if (reply.kind == ServerReply::Kind::status) {
      heard = pipeline_.hear_status(reply.text);
    } else if (reply.kind == ServerReply::Kind::error) {
      note_answer(reply.text);  // first, so that the failing call has the reason
      leave_if_unfit(reply.text);
      heard = pipeline_.hear_error(reply.text, now);
    } else if (reply.kind == ServerReply::Kind::integer) {
      heard = pipeline_.hear_integer();
    }
    if (heard == Pipeline::Heard::nonsense) return false;
    if (heard == Pipeline::Heard::reconnect) draining_ = true;
  }
  return true;
}

/// Leaves a server that cannot decide for the next address, if there is one; for some errors the
/// pipeline leaves it in any case, because the name may have moved to another server.
void Link::leave_if_unfit(std::string_view words) {
  const Errc word = error_of(words);
  if (!is_unfit(word) || (word == Errc::loading && !connection_.has_others())) return;
  draining_ = true;
  connection_.put_last();
  note_loss(words, word);
}

/// That thread is still woken if it sleeps for longer than the calls' timeouts, and it handles
/// errors and partial writes.
bool Link::write_if_idle(std::span<CallPtr> calls) noexcept {
  std::unique_lock wire(wire_, std::try_to_lock);
  const Time now = context_.clock.now();
  if (!wire || !may_write_at_once(now)) return false;
  // Later marks find their calls in the pipeline.
  const auto is_marked = [](const CallPtr& call) { return call->cancelled.load(); };
  if (std::ranges::any_of(calls, is_marked)) return false;
  Time due = now + context_.options.stall_timeout;
  for (CallPtr& call : calls) {
    due = std::min(due, call->deadline);
    pipeline_.submit(std::move(call));
  }
  std::size_t taken = 0;
  try {
    const detail::Uncancelled uncancelled;
    pipeline_.flush(out_, now);
    error_code ignored;  // the next read finds it
    taken = connection_.transport().write(out_, ignored);
  } catch (const std::bad_alloc&) {  // nothing was sent
  }
  note_taken(taken);
  if (due < armed_until_) due_ = std::min(due_, due);
  const bool must_write = !out_.empty() || connection_.transport().has_unsent();
  const bool must_wake = due < armed_until_ || must_write || pipeline_.has_unsent();
  wire.unlock();  // the other thread takes it first
  if (must_wake) context_.wake_up();
  return true;
}

/// True if there is a connection without pending or waiting requests. The I/O thread writes several
/// callers' requests together, which is more efficient.
bool Link::may_write_at_once(Time now) noexcept {
  const bool busy = !out_.empty() || pipeline_.has_sent() || pipeline_.has_unsent();
  if (!connected_ || draining_ || busy || connection_.transport().has_unsent()) return false;
  return !is_in_doubt(now) && context_.inbox.is_empty();
}

/// True if the connection must be checked before it is used. A call that was sent may not be sent
/// again, so one that is dropped in silence is found out by something else.
bool Link::is_in_doubt(Time now) const noexcept {
  return !pipeline_.has_sent() && now - heard_ >= context_.options.check_idle_after;
}

/// How long the oldest request waits for its reply.
Span Link::patience() const noexcept {
  const Span stall = context_.options.stall_timeout;
  if (!pipeline_.is_checking()) return stall;
  return std::min(stall, context_.options.connect_timeout / 2);
}

bool Link::has_calls() const noexcept {
  const std::lock_guard wire(wire_);
  return pipeline_.count() > 0;
}

void Link::submit(CallList& calls) noexcept {
  const std::lock_guard wire(wire_);
  while (!calls.empty()) submit(calls.pop_front());
}

void Link::submit(CallPtr call) noexcept {
  if (life_->is_stopped) return fail(std::move(call), Errc::shut_down);
  const std::lock_guard wire(wire_);
  due_ = std::min(due_, call->deadline);
  pipeline_.submit(std::move(call));
}

void Link::fail(CallPtr call, Errc code) noexcept {
  const std::lock_guard wire(wire_);
  pipeline_.end(std::move(call), code);
  context_.inbox.recycle(pipeline_.ended());
}

/// A call whose deadline has passed is not sent.
void Link::work() {
  const std::lock_guard wire(wire_);
  if (has_calls() || owner_.is_needed(*this)) open();
  const Time due = std::exchange(due_, Time::max());
  if (due <= context_.clock.now()) return expire();
  arm(due);
  flush();
}

void Link::notify(std::string channel) {
  const std::lock_guard wire(wire_);
  if (connected_ && !draining_) pipeline_.notify(std::move(channel));
}

void Link::cancel_marked() noexcept {
  const std::lock_guard wire(wire_);
  pipeline_.cancel_marked();
  context_.inbox.recycle(pipeline_.ended());
}

void Link::release_unsent(CallList& calls, const std::function<bool(const Call&)>& leaves) {
  const std::lock_guard wire(wire_);
  pipeline_.release_unsent(calls, leaves);
}

void Link::leave(std::string_view cause) {
  const std::lock_guard wire(wire_);
  if (!connected_) return;
  draining_ = true;
  note_loss(cause);
  if (!pipeline_.has_sent()) return drop();
  left_at_ = std::min(left_at_, context_.clock.now() + longest_drain);
  arm(left_at_);
}

void Link::connect_anew() {
  if (is_connected()) return;
  is_to_connect_anew_ = true;
  pause_.cancel();
  connection_.abandon();
}

void Link::break_off(std::string_view cause) noexcept {
  const std::lock_guard wire(wire_);
  note_loss(cause);
  drop();
}

/// Writes directly as much as the socket takes, which is usually all, and lets Asio wait only for
/// the rest: an asynchronous write would poll all sockets for each batch.
void Link::flush() {
  while (connected_ && !writing_) {
    const bool has_calls = !draining_ && pipeline_.has_unsent() && !pipeline_.is_checking();
    if (out_.empty() && has_calls) {
      const Time now = context_.clock.now();
      is_in_doubt(now) ? pipeline_.check(out_, now) : pipeline_.flush(out_, now);
    }
    if (out_.empty() && !connection_.transport().has_unsent()) return;
    error_code error;
    const std::string_view rest = std::string_view(out_).substr(written_);
    const std::size_t taken = connection_.transport().write(rest, error);
    if (error && error != asio::error::would_block) {
      note_loss(error);
      return drop();
    }
    note_taken(taken);
    if (pipeline_.has_sent()) arm(pipeline_.oldest_sent() + patience());
    if (error) wait_to_write();
  }
}

/// The socket took `bytes` more of out_. A request of which it took no byte waits again, so that it
/// can time out or be cancelled, and survives the end of the connection.
void Link::note_taken(std::size_t bytes) noexcept {
  pipeline_.took(out_, bytes);
  written_ += bytes;
  if (written_ < out_.size()) return;
  out_.clear();
  written_ = 0;
}

void Link::wait_to_write() {
  writing_ = true;
  connection_.transport().wait_writable([this, epoch = epoch_](error_code error) {
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

void Link::drop(Errc oldest) noexcept {
  const std::lock_guard wire(wire_);
  if (!connected_) return;
  connected_ = false;
  is_connected_.store(false);
  writing_ = false;
  out_.clear();
  written_ = 0;
  draining_ = false;
  left_at_ = Time::max();
  ++epoch_;
  connection_.close();
  pace_.ended(context_.clock.now(), loss_ && is_unfit(*loss_));
  last_failure_ = loss_.value_or(Errc::not_connected);
  pipeline_.disconnect(oldest);
  context_.inbox.recycle(pipeline_.ended());
}

/// Records why the connection is closed: the first cause counts. `word`: the error of calls until
/// there is another connection.
/// What an error without a code of its own says is known to nobody but the server.
void Link::note_answer(std::string_view words) noexcept {
  const Errc word = error_of(words);
  if (word != Errc::server_error) return;
  context_.journal.note_answer(connection_.address(), words, word);
}

void Link::note_loss(std::string_view cause, Errc word) noexcept {
  if (!connected_ || loss_) return;
  loss_ = word;
  context_.journal.note_loss(connection_.address(), cause, word);
}

void Link::note_loss(const error_code& error) noexcept try {
  const std::string why = connection_.transport().why();
  if (!why.empty()) return note_loss(why);
  note_loss(error == asio::error::eof ? "the server closed the connection" : error.message());
} catch (const std::bad_alloc&) {
  return;
}

void Link::arm(Time at) {
  if (at >= armed_until_) return;
  armed_until_ = at;
  arm_expiry(Span{0});
}

void Link::arm_expiry(Span least) {
  expiry_.expires_after(std::clamp(armed_until_ - context_.clock.now(), least, longest_sleep));
  expiry_.async_wait([this](error_code error) {
    if (error) return;
    expire();
    pass_on();
  });
}

void Link::expire() {
  const std::lock_guard wire(wire_);
  const Time now = context_.clock.now();
  pipeline_.expire(now, connected_ ? Errc::timed_out : last_failure_);
  context_.inbox.recycle(pipeline_.ended());
  if (pipeline_.has_sent() && pipeline_.oldest_sent() + patience() <= now) {
    if (!pipeline_.is_checking()) connection_.put_last();  // else the network is to blame
    note_loss(no_answer_within(patience()));
    drop();
  }
  if (left_at_ <= now) drop();
  armed_until_ = std::min(pipeline_.next_deadline(), left_at_);
  if (pipeline_.has_sent()) {
    armed_until_ = std::min(armed_until_, pipeline_.oldest_sent() + patience());
  }
  if (armed_until_ != Time::max()) arm_expiry(sleep_among(pipeline_.count()));
  flush();
}

void Link::stop() noexcept {
  const std::lock_guard wire(wire_);
  life_->is_stopped = true;
  drop();
  pipeline_.abandon(Errc::shut_down);
  context_.inbox.recycle(pipeline_.ended());
  connection_.stop();
}

}  // namespace sluice::redis_detail
