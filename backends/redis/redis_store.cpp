// The Redis store: checks a plan, encodes it, and passes it to the client's thread.
#include "sluice/redis/redis_store.hpp"

#include <algorithm>
#include <array>
#include <boost/system/system_error.hpp>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/redis/client.hpp"
#include "backends/redis/protocol/hash_slot.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/detail/uncancelled.hpp"
#include "sluice/extend/conclude.hpp"

namespace sluice {
namespace {

using redis_detail::CallList;
using redis_detail::CallPtr;
using redis_detail::Client;

class RedisStoreImpl final : public RedisStore {
 public:
  explicit RedisStoreImpl(std::shared_ptr<Client> client) : client_(std::move(client)) {
    client_->start();
  }
  ~RedisStoreImpl() override {
    end();
    // In a forked child there is no thread to stop, and the client must not be destroyed.
    if (!client_->is_forked()) {
      client_->stop();
    } else {
      new std::shared_ptr<Client>(std::move(client_));
    }
  }

  // A completion may destroy the store: after the first one, only the client is used.

  void execute(const Plan& plan, Completion done) noexcept override {
    const std::shared_ptr<Client> client = client_;
    Preparing preparing{client->clock().now(), 1, {}};
    if (detail::is_constant(plan)) return answer_constant(plan, preparing.now, done);
    PlanFault fault;
    CallPtr call = prepare(*client, plan, preparing, done, fault);
    if (!call) return done.fail(fault.error, fault.step);
    client->submit({&call, 1});
  }

  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override {
    Preparing preparing;
    submit_together(plans, done, preparing);
  }

  /// In one round trip: the plans have one id, under which the server admits one of them only.
  void execute_first(std::span<const Plan> plans, std::span<Completion> done) noexcept override {
    if (!may_share_id(plans) || (client_->is_in_cluster() && !have_one_tag(plans))) {
      return RedisStore::execute_first(plans, done);
    }
    Preparing preparing;
    preparing.id = RequestId{client_->next_nonce(), client_->next_nonce()};
    try {
      preparing.next = {&script_for_all(plans), plans.front().steps().front().key.tag(), 0};
    } catch (const std::bad_alloc&) {
      for (Completion& each : done) each.fail(Errc::queue_full);
      return;
    }
    submit_together(plans, done, preparing);
  }

  void notify(const Key& key) noexcept override try {
    if (!client_->is_forked()) client_->notify(channel_of(key));
  } catch (const std::bad_alloc&) {
    return;  // any wake-up may be lost
  }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override try {
    if (client_->is_forked()) return nullptr;
    return client_->watch_channel(channel_of(key), std::move(seen));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

  [[nodiscard]] Clock& clock() noexcept override { return client_->clock(); }
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept override {
    return client_->reason_of(error);
  }
  /// A part is a node of the cluster, by the number of its link.
  [[nodiscard]] StorePart part_of(const Key& key) const noexcept override try {
    if (client_->is_forked()) return {};
    return client_->part_of(client_->is_in_cluster() ? redis_detail::hash_slot(channel_of(key))
                                                     : 0);
  } catch (const std::bad_alloc&) {
    return {};
  }
  [[nodiscard]] bool may_block() const noexcept override { return !client_->on_io_thread(); }
  [[nodiscard]] RedisStats stats() const noexcept override { return client_->stats(); }
  [[nodiscard]] RedisHealth health() const override { return client_->health(); }

 private:
  static void answer_constant(const Plan& plan, Time now, Completion& done) noexcept {
    detail::answer_constant(plan, now, Source::redis, done);
  }

  /// The data that the calls of a batch share: a time, and memory, which the first call takes after
  /// its checks, because a forked child must not touch a lock.
  struct Preparing {
    Time now{};
    std::size_t wanted = 0;
    CallList spare{};
    // Of alternatives:
    std::optional<RequestId> id{};
    redis_detail::Alternative next{};
  };

  /// Prepares the calls with one reading of the clock and one access to the memory pool, and
  /// submits them together, so that the I/O thread is woken once.
  void submit_together(std::span<const Plan> plans, std::span<Completion> done,
                       Preparing& preparing) noexcept {
    const std::shared_ptr<Client> client = client_;
    std::array<CallPtr, 64> calls;
    std::size_t ready = 0;
    const auto submit = [&] { client->submit({calls.data(), std::exchange(ready, 0)}); };
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (i % calls.size() == 0) {
        preparing.now = client->clock().now();
        preparing.wanted = std::min(calls.size(), plans.size() - i);
      }
      PlanFault fault;
      if (detail::is_constant(plans[i])) {
        submit();  // first, as below
        answer_constant(plans[i], preparing.now, done[i]);
        continue;
      }
      calls[ready] = prepare(*client, plans[i], preparing, done[i], fault);
      if (calls[ready]) {
        if (++ready == calls.size()) submit();
      } else {
        submit();  // first: if the store is destroyed, it ends its calls
        done[i].fail(fault.error, fault.step);
      }
    }
    submit();
  }

  static bool have_one_tag(std::span<const Plan> plans) noexcept {
    return std::ranges::all_of(plans, [&](const Plan& plan) {
      return plan.steps().front().key.tag() == plans.front().steps().front().key.tag();
    });
  }
  /// Those that have an id keep it.
  static bool may_share_id(std::span<const Plan> plans) noexcept {
    return !plans.empty() && std::ranges::none_of(plans, [](const Plan& plan) {
      return plan.id() || plan.steps().empty() || detail::is_constant(plan) ||
             !redis_detail::has_scripts(plan.steps());
    });
  }

  static const redis_detail::Script& script_for_all(std::span<const Plan> plans) {
    std::vector<Step> steps;
    for (const Plan& plan : plans) {
      steps.insert(steps.end(), plan.steps().begin(), plan.steps().end());
    }
    return redis_detail::script_for(steps, true);
  }

  /// The channel of a key is its name.
  [[nodiscard]] std::string channel_of(const Key& key) const {
    const redis_detail::KeyStyle& style = client_->key_style();
    std::string channel = style.prefix;
    append_rendered(channel, key, style.secret);
    return channel;
  }

  /// The call to submit, which completes `done`; or null, and the error.
  static CallPtr prepare(Client& client, const Plan& plan, Preparing& preparing, Completion& done,
                         PlanFault& fault) noexcept {
    fault = find_fault(plan);
    if (fault.error) return nullptr;
    fault.error = find_refusal(client, plan);
    if (!fault.error && client.is_in_cluster()) fault = find_second_tag(plan);
    if (fault.error) return nullptr;
    try {
      if (CallPtr call = make_call(client, plan, preparing, done)) return call;
    } catch (const std::bad_alloc&) {
    }
    client.count_refusal();
    fault.error = Errc::queue_full;
    return nullptr;
  }

  static std::error_code find_refusal(const Client& client, const Plan& plan) noexcept {
    if (client.is_forked()) return Errc::forked;
    if (!redis_detail::has_scripts(plan.steps())) return Errc::unsupported_operation;
    if (plan.stop().stop_requested()) return Errc::cancelled;
    if (plan.timeout() < Span{0}) return Errc::timed_out;
    return {};
  }

  /// Keys of two tags are on one node by chance only.
  static PlanFault find_second_tag(const Plan& plan) noexcept {
    const auto steps = plan.steps();
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (steps[i].key.tag() != steps[0].key.tag()) {
        return {Errc::cross_slot, static_cast<std::uint16_t>(i)};
      }
    }
    return {};
  }

  /// Null if max_in_flight calls are pending.
  static CallPtr make_call(Client& client, const Plan& plan, Preparing& preparing,
                           Completion& done) {
    const Span timeout = plan.timeout() == Span{0} ? client.options().call_timeout : plan.timeout();
    CallPtr call = client.new_call(preparing.spare, preparing.wanted);
    if (!call) return nullptr;
    const Time now = preparing.now;
    call->nonce = client.next_nonce();
    call->deadline = timeout < Time::max() - now ? now + timeout : Time::max();
    call->steps = plan.steps().size();
    call->output = 0;
    for (std::size_t i = 0; i < call->steps; ++i) {
      call->asked[i] = AskedStep(plan.steps()[i]);
      call->output += call->asked[i].output;
    }
    std::optional<redis_detail::Alternative> alternative;
    if (preparing.id) {
      alternative = preparing.next;
      ++preparing.next.number;
    }
    call->is_alternative = alternative.has_value();
    redis_detail::encode(call->request, plan.steps(), call->nonce, client.key_style(),
                         preparing.id ? preparing.id : plan.id(), alternative);
    // The first braces of the request are those of the first key.
    if (client.is_in_cluster()) call->slot = redis_detail::hash_slot(call->request.tail);
    call->done = std::move(done);
    client.watch(*call, plan.stop());
    return call;
  }

  std::shared_ptr<Client> client_;
};

void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument("RedisOptions: " + message);
}

void require_span(Span span, const std::string& name) {
  require(span >= Span{1} && span <= std::chrono::hours{24},
          name + " must be 1 us to 24 h, got " + std::to_string(span.count()) + " us");
}

/// `name`: of the member.
void check(const RedisTls& tls, const std::string& name, const std::string& unix_socket) {
  require(redis_detail::has_tls(), name + " is set, and this build of Sluice has no OpenSSL");
  require(tls.certificate_file.empty() == tls.key_file.empty(),
          name + ".certificate_file and " + name + ".key_file must be set both or none");
  require(unix_socket.empty() || tls.verify != TlsVerify::full || !tls.server_name.empty(),
          name + ".verify is full, and a unix socket has no name: set " + name + ".server_name");
  redis_detail::prepare(tls);
}

void check(const std::vector<RedisAddress>& addresses, const std::string& name) {
  for (const RedisAddress& address : addresses) {
    require(!address.host.empty(), name + ": host must not be empty");
    require(address.port != 0, name + ": port must be 1 to 65535, got 0");
  }
}

void check(const RedisSentinel& sentinel) {
  require(!sentinel.master.empty(), "sentinel.master must not be empty");
  require(!sentinel.sentinels.empty(), "sentinel.sentinels must not be empty");
  check(sentinel.sentinels, "sentinel.sentinels");
  require(sentinel.username.empty() || !sentinel.password.empty(),
          "a sentinel.username needs a sentinel.password");
  require(!sentinel.credentials || sentinel.password.empty(),
          "sentinel.credentials and a sentinel.password exclude each other");
  if (sentinel.tls) check(*sentinel.tls, "sentinel.tls", "");
}

void check_cluster(const RedisOptions& options) {
  check(options.cluster, "cluster");
  require(!options.sentinel, "cluster and sentinel exclude each other");
  require(options.unix_socket.empty(), "cluster and unix_socket exclude each other");
  require(options.database == 0,
          "database must be 0 with cluster, got " + std::to_string(options.database));
}

void check_address(const RedisOptions& options) {
  if (!options.cluster.empty()) return check_cluster(options);
  if (options.sentinel) return check(*options.sentinel);
  if (options.unix_socket.empty()) {
    require(!options.host.empty(), "host must not be empty");
    require(options.port != 0, "port must be 1 to 65535, got 0");
  } else {
    require(options.unix_socket.size() <= 107, "unix_socket must have at most 107 bytes, got " +
                                                   std::to_string(options.unix_socket.size()));
  }
}

void check(const RedisOptions& options) {
  check_address(options);
  require(options.username.empty() || !options.password.empty(), "a username needs a password");
  require(!options.credentials || options.password.empty(),
          "credentials and a password exclude each other");
  if (options.tls) check(*options.tls, "tls", options.sentinel ? "" : options.unix_socket);
  require_span(options.call_timeout, "call_timeout");
  require_span(options.connect_timeout, "connect_timeout");
  require_span(options.stall_timeout, "stall_timeout");
  require_span(options.check_idle_after, "check_idle_after");
  require_span(options.reconnect_min, "reconnect_min");
  require_span(options.reconnect_max, "reconnect_max");
  require(options.reconnect_max >= options.reconnect_min,
          "reconnect_max must be reconnect_min or more");
  require(options.max_in_flight >= 1 && options.max_in_flight <= std::size_t{1} << 20,
          "max_in_flight must be 1 to 1048576, got " + std::to_string(options.max_in_flight));
  require(options.key_prefix.size() <= 64 &&
              options.key_prefix.find_first_of("{}") == std::string::npos,
          "key_prefix must have at most 64 bytes and no braces");
}

}  // namespace

std::string_view redis_functions() { return redis_detail::library().text; }

std::function<void(const RedisEvent&)> observe_connections(Observer& observer,
                                                           std::string_view store) {
  return [&observer, name = std::string(store)](const RedisEvent& event) {
    using Kind = RedisEvent::Kind;
    using Change = ConnectionEvent::Change;
    const Change change = event.kind == Kind::connected ? Change::connected
                          : event.kind == Kind::failed  ? Change::failed
                          : event.kind == Kind::lost    ? Change::lost
                                                        : Change::other_server;
    observer.connection_changed({name, event.address, change, event.cause, event.error});
  };
}

NewStore<RedisStore> make_redis_store(RedisOptions options) {
  check(options);
  SystemRng system;
  Rng& rng = options.rng != nullptr ? *options.rng : system;
  const std::uint64_t seed = rng.next();
  // Any thread may release it last; it closes files.
  const auto destroy = [](Client* client) {
    const detail::Uncancelled uncancelled;
    delete client;
  };
  try {
    return std::unique_ptr<RedisStore>(std::make_unique<RedisStoreImpl>(
        std::shared_ptr<Client>(new Client(std::move(options), seed), destroy)));
  } catch (const boost::system::system_error& error) {  // which is no std::system_error
    throw std::system_error(error.code(), "make_redis_store");
  }
}

}  // namespace sluice
