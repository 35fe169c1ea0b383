#include "backends/redis/client.hpp"

#include <signal.h>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "backends/redis/protocol/hash_slot.hpp"
#include "sluice/detail/uncancelled.hpp"

namespace sluice::redis_detail {
namespace {

namespace asio = boost::asio;

thread_local const Client* running_here = nullptr;

/// The most wake-ups that wait to be sent; more are dropped.
constexpr std::size_t max_notices = 1024;

/// The pause when the system is out of a resource.
constexpr Span breather = std::chrono::milliseconds{1};

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
      names_(io_, look_up_on_threads(resolve)),
      topology_(make_topology(
          {io_, options_, names_, clock_, journal_, inbox_, [this]() noexcept { wake_up(); }},
          scramble(~seed))),
      subscriber_(io_, options_, names_, scramble(seed), [this](Connection& connection) {
        return topology_->connect_subscriber(connection);
      }) {}

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

/// After std::bad_alloc any connection may be out of step: all are closed, and sent calls end as
/// unknown. Waiting calls continue to wait, and connecting starts again.
void Client::run() {
  while (!closed_) {
    try {
      topology_->start();
      for (std::size_t i = 0; i < topology_->size(); ++i) topology_->link(i).expire();
      io_.run();
    } catch (const std::exception& error) {
      for (std::size_t i = 0; i < topology_->size(); ++i) {
        topology_->link(i).break_off(error.what());
      }
      if (stopping_.load()) close();
      if (!closed_) std::this_thread::sleep_for(breather);
    }
  }
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
  RedisStats stats;
  stats.calls = calls_.load();
  stats.not_executed = refusals_.load();
  for (std::size_t i = 0; i < topology_->size(); ++i) {
    const Link& link = topology_->link(i);
    const Pipeline::Counters& counters = link.counters();
    stats.decided += counters.decided.load();
    stats.not_executed += counters.not_executed.load();
    stats.unknown += counters.unknown.load();
    stats.connections += link.connections();
    stats.reconnects += link.connections() > 0 ? link.connections() - 1 : 0;
    stats.redirections += link.redirections();
    stats.late_replies += counters.late_replies.load();
    stats.scripts_loaded += counters.scripts_loaded.load();
    stats.protocol_errors += link.protocol_errors();
  }
  const std::uint64_t ended = stats.decided + stats.not_executed + stats.unknown;
  stats.in_flight = stats.calls > ended ? stats.calls - ended : 0;  // they are read one by one
  stats.subscriptions = subscriber_.confirmed();
  if (!is_forked()) add_details(stats);  // another thread of the parent may have held a lock
  return stats;
}

void Client::add_details(RedisStats& stats) const noexcept try {
  stats.failed_attempts = journal_.failed_attempts();
  stats.last_failure = journal_.last_failure();
  LatencyCounts times;
  for (std::size_t i = 0; i < topology_->size(); ++i) {
    const Link& link = topology_->link(i);
    link.latencies().add_to(times, clock_.now());
    if (link.connections() > 0) stats.nodes.push_back(link.stats());
  }
  stats.reply_times = reply_times_of(times);
} catch (const std::bad_alloc&) {
  return;
}

RedisHealth Client::health() {
  RedisHealth health;
  if (is_forked()) return health;
  std::size_t connected = 0;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < topology_->size(); ++i) {
    const Link& link = topology_->link(i);
    if (link.connections() > 0) health.nodes.push_back(link.health());
    if (link.is_connected()) {
      ++connected;
    } else if (topology_->is_serving(link) && (link.connections() > 0 || link.has_calls())) {
      ++lost;
    }
  }
  health.connected = connected > 0 && lost == 0;
  health_wanted_.store(true);
  wake_up();
  return health;
}

std::shared_ptr<const std::string> Client::reason_of(const std::error_code& error) const noexcept {
  if (is_forked() || error.category() != error_category()) return nullptr;
  return journal_.reason_of(static_cast<Errc>(error.value()));
}

CallPtr Client::new_call(CallList& spare, std::size_t wanted) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  const std::size_t before = in_flight_.fetch_add(1);
  InFlight in_flight(in_flight_);
  if (before >= options_.max_in_flight) return nullptr;
  if (spare.empty()) inbox_.take_spare(spare, wanted);
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
    const bool again = !notices_.empty() && notices_.back().channel == channel;
    if (again || notices_.size() >= max_notices) return;
    notices_.push_back({hash_slot(channel), std::move(channel)});
  }
  any_notice_.store(true);
  wake_up();
}

void Client::submit(std::span<CallPtr> calls) noexcept {
  if (calls.empty() || write_if_idle(calls)) return;
  inbox_.deliver(calls);
  for (CallPtr& refused : calls) {
    if (!refused) continue;
    refused->leave();
    count_refusal();
    refused->done.fail(Errc::shut_down);
  }
  wake_up();
}

/// A batch for several servers goes by the I/O thread.
bool Client::write_if_idle(std::span<CallPtr> calls) noexcept {
  if (on_io_thread()) return false;  // it writes after it has processed all that it has read
  Link& link = topology_->link_of(calls.front()->slot);
  for (const CallPtr& call : calls.subspan(1)) {
    if (&topology_->link_of(call->slot) != &link) return false;
  }
  return link.write_if_idle(calls);
}

void Client::wake() {
  woken_.store(false);  // first: later calls wake the thread again
  if (stopping_.load()) return close();
  if (closed_) return;
  drain_inbox();
  if (any_notice_.exchange(false)) drain_notices();
  if (any_cancelled_.exchange(false)) cancel_marked();
  if (watched_anew_.exchange(false)) subscriber_.update();
  const bool is_health_wanted = health_wanted_.exchange(false);
  for (std::size_t i = 0; i < topology_->size() && !closed_; ++i) {
    if (is_health_wanted) topology_->link(i).refresh_health();
    topology_->link(i).work();
  }
}

/// Moves the calls to the links.
void Client::drain_inbox() noexcept {
  CallList arrived;
  inbox_.take(arrived);
  bool marked = false;
  CallList together;  // for one link: its lock is taken once
  while (!arrived.empty()) {
    CallPtr call = arrived.pop_front();
    marked =
        marked || call->cancelled.load();  // it may have been marked before it was in the inbox
    Link& link = topology_->link_of(call->slot);
    together.push_back(std::move(call));
    const bool is_last = arrived.empty() || &topology_->link_of(arrived.front().slot) != &link;
    if (is_last) link.submit(together);
  }
  inbox_.end_taking();
  if (marked) cancel_marked();
}

void Client::drain_notices() noexcept try {
  std::vector<Notice> notices;
  {
    const std::lock_guard lock(mutex_);
    notices.swap(notices_);
  }
  for (Notice& notice : notices) {
    topology_->link_of(notice.slot).notify(std::move(notice.channel));
  }
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

void Client::cancel_marked() noexcept {
  for (std::size_t i = 0; i < topology_->size(); ++i) topology_->link(i).cancel_marked();
}

/// Calls in the inbox move to the links first, which end them.
void Client::close() noexcept {
  closed_ = true;
  inbox_.close();
  drain_inbox();
  journal_.stop();
  topology_->stop();
  subscriber_.stop();
  work_.reset();
  io_.stop();
}

}  // namespace sluice::redis_detail
