// Calls in, bytes out, replies in, deadlines: the traffic of one connection.
#include "client.hpp"

#include <hiredis/hiredis.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

thread_local const Client* running_here = nullptr;

constexpr std::size_t read_bytes = 65'536;

/// Keeps the timer's arithmetic in nanoseconds far from its limits.
constexpr Span longest_sleep = std::chrono::hours{1};

/// A bijection (the finalizer of SplitMix64), so that consecutive numbers become nonces that are
/// distinct and look like nothing that a confused server would send.
std::uint64_t scramble(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

void Client::FreeReader::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
void Client::FreeReply::operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }

Client::Client(RedisOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      nonce_(seed),
      work_(io_.get_executor()),
      in_(read_bytes),
      jitter_(seed) {}

Client::~Client() = default;

void Client::start() {
  thread_ = std::thread([self = shared_from_this()] {
    running_here = self.get();
    asio::co_spawn(self->io_, self->serve(), asio::detached);
    self->io_.run();
    running_here = nullptr;
  });
}

void Client::stop() {
  if (on_io_thread()) {  // the store is destroyed by one of its own completions
    close();
    thread_.detach();
    return;
  }
  asio::post(io_, [this] { close(); });
  thread_.join();
}

bool Client::on_io_thread() const noexcept { return running_here == this; }

std::uint64_t Client::next_nonce() noexcept {
  return scramble(nonce_.fetch_add(1, std::memory_order_relaxed));
}

RedisStats Client::stats() const noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  return {calls_.load(relaxed),          connections_.load(relaxed),
          unknown_.load(relaxed),        late_replies_.load(relaxed),
          scripts_loaded_.load(relaxed), protocol_errors_.load(relaxed)};
}

CallPtr Client::new_call() {
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (in_flight_.fetch_add(1, std::memory_order_relaxed) >= options_.max_in_flight) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (pool_.empty()) return std::make_unique<Call>();
  CallPtr call = std::move(pool_.back());
  pool_.pop_back();
  return call;
}

void Client::submit(CallPtr call, const std::stop_token& stop) {
  if (stop.stop_possible()) {
    // Through the inbox first: the call may not have reached the pipeline yet.
    // Weak all the way: a handler that owned the client would be owned by the client's queue.
    call->on_stop.emplace(stop, [weak = weak_from_this(), nonce = call->nonce] {
      if (const auto self = weak.lock())
        asio::post(self->io_, [weak, nonce] {
          if (const auto alive = weak.lock()) alive->cancel(nonce);
        });
    });
  }
  bool wake_up = false;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_inbox_) {
      inbox_.push_back(std::move(call));
      wake_up = !std::exchange(woken_, true);
    }
  }
  if (call) return call->fail(Errc::shut_down);
  if (wake_up) asio::post(io_, [this] { wake(); });
}

void Client::cancel(std::uint64_t nonce) {
  drain_inbox();
  pipeline_.cancel(nonce);
  recycle();
  flush();
}

void Client::drain_inbox() {
  std::vector<CallPtr> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(inbox_);
    woken_ = false;
  }
  for (auto& call : arrived) {
    if (call->deadline < armed_until_) {
      armed_until_ = call->deadline;
      arm_expiry();
    }
    pipeline_.submit(std::move(call));
  }
  arrived.clear();
  const std::lock_guard lock(mutex_);
  if (inbox_.empty() && inbox_.capacity() < arrived.capacity()) inbox_.swap(arrived);
}

void Client::wake() {
  drain_inbox();
  if (closed_) pipeline_.abandon(Errc::shut_down);
  flush();
}

void Client::flush() {
  if (!connected_ || writing_ || draining_ || !pipeline_.has_unsent()) return;
  out_.clear();
  pipeline_.flush(out_, clock_.now());
  writing_ = true;
  asio::async_write(socket_, asio::buffer(out_),
                    [this, epoch = epoch_](error_code error, std::size_t) {
                      if (epoch != epoch_) return;
                      writing_ = false;
                      if (error) return drop();
                      flush();
                    });
}

/// Gives the memory of ended calls back to callers, and publishes the counters.
void Client::recycle() {
  auto& ended = pipeline_.ended();
  if (!ended.empty()) {
    in_flight_.fetch_sub(ended.size(), std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    for (auto& call : ended) {
      call->attempts = 0;
      pool_.push_back(std::move(call));
    }
    ended.clear();
  }
  const auto& counters = pipeline_.counters();
  unknown_.store(counters.unknown, std::memory_order_relaxed);
  late_replies_.store(counters.late_replies, std::memory_order_relaxed);
  scripts_loaded_.store(counters.scripts_loaded, std::memory_order_relaxed);
}

void Client::drop() {
  if (!connected_) return;
  connected_ = false;
  writing_ = false;
  draining_ = false;
  ++epoch_;
  error_code ignored;
  socket_.close(ignored);
  last_failure_ = Errc::not_connected;
  pipeline_.disconnect();
  recycle();
}

bool Client::feed(std::size_t bytes) {
  if (!guard_.accept({in_.data(), bytes})) return false;
  return redisReaderFeed(reader_.get(), in_.data(), bytes) == REDIS_OK;
}

Client::ReplyPtr Client::next_reply(bool& broken) {
  void* raw = nullptr;
  broken = redisReaderGetReply(reader_.get(), &raw) != REDIS_OK;
  return ReplyPtr(static_cast<redisReply*>(raw));
}

/// Handles every reply that is complete. False if the connection must be dropped.
bool Client::hear_all() {
  while (connected_) {
    bool broken = false;
    const ReplyPtr reply = next_reply(broken);
    if (broken) return false;
    if (!reply) return true;
    const std::string_view text(reply->str, reply->str == nullptr ? 0 : reply->len);
    auto heard = Pipeline::Heard::nonsense;
    if (reply->type == REDIS_REPLY_STRING) {
      heard = pipeline_.hear_string(text);
    } else if (reply->type == REDIS_REPLY_ERROR) {
      heard = pipeline_.hear_error(text);
    }
    if (heard == Pipeline::Heard::nonsense) return false;
    if (heard == Pipeline::Heard::reconnect) draining_ = true;
  }
  return true;
}

asio::awaitable<void> Client::read_replies() {
  while (connected_) {
    error_code error;
    const std::size_t bytes = co_await socket_.async_read_some(
        asio::buffer(in_), asio::redirect_error(asio::use_awaitable, error));
    if (error || !connected_) break;
    if (!feed(bytes) || !hear_all()) {
      protocol_errors_.fetch_add(1, std::memory_order_relaxed);
      break;
    }
    recycle();
    if (draining_ && !pipeline_.has_sent()) break;
    flush();
  }
  drop();
}

void Client::arm_expiry() {
  expiry_.expires_after(std::min<Span>(armed_until_ - clock_.now(), longest_sleep));
  expiry_.async_wait([this](error_code error) {
    if (!error) expire();
  });
}

void Client::expire() {
  const Time now = clock_.now();
  drain_inbox();
  pipeline_.expire(now, connected_ ? Errc::timed_out : last_failure_);
  recycle();
  if (pipeline_.has_sent() && pipeline_.oldest_sent() + options_.stall_timeout <= now) drop();
  armed_until_ = pipeline_.next_deadline();
  if (pipeline_.has_sent()) {
    armed_until_ = std::min(armed_until_, pipeline_.oldest_sent() + options_.stall_timeout);
  }
  if (armed_until_ != Time::max()) arm_expiry();
  flush();
}

void Client::close() {
  closed_ = true;
  {
    const std::lock_guard lock(mutex_);
    closed_inbox_ = true;
  }
  drain_inbox();
  drop();
  pipeline_.abandon(Errc::shut_down);
  recycle();
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
  work_.reset();
  io_.stop();
}

}  // namespace sluice::redis_detail
