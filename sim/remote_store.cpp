// Messages are kept in a pool and reused, so that a call allocates nothing once the pool is warm.
#include "sluice/sim/remote_store.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/extend/operation.hpp"
#include "sluice/extend/subscription.hpp"

#include <algorithm>

namespace sluice::sim {

RemoteStore::RemoteStore(Timeline& timeline, Store& inner, const Link& link, const SeededRng& rng)
    : StoreWrapper(inner),
      timeline_(timeline),
      link_(link),
      rng_(rng),
      to_store_(link.to_store, states_of(rng, 0)),
      from_store_(link.from_store, states_of(rng, 1)),
      last_arrival_(timeline.now()),
      last_delivery_(timeline.now()) {}

void RemoteStore::hang_up() noexcept {
  for (const auto& [id, call] : calls_) timeline_.cancel(call.timer);
  calls_.clear();
  // By index, because a completion may send again.
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (!message.under_way) continue;
    if (!message.done) {  // given up by its caller, or being answered now
      if (timeline_.cancel(message.timer)) release(message);
      continue;
    }
    timeline_.cancel(message.timer);
    timeline_.cancel(message.expiry);
    Completion done = std::move(message.done);
    release(message);
    done.fail(message.arrived ? Errc::unknown : Errc::shut_down);
  }
}

void RemoteStore::close() noexcept {
  closed_ = true;
  hang_up();
}

void RemoteStore::abandon() noexcept {
  closed_ = true;
  for (auto call = calls_.begin(); call != calls_.end();) {
    const bool is_for_client = call->second.tag.empty();
    if (is_for_client) timeline_.cancel(call->second.timer);
    call = is_for_client ? calls_.erase(call) : std::next(call);
  }
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (!message.under_way || !message.done) continue;
    timeline_.cancel(message.expiry);
    message.abandoned = true;
    Completion done = std::move(message.done);
    if (message.arrived) note_orphan(message);
    if (message.timer == Timeline::Timer{}) release(message);  // it was lost
    done.fail(Errc::unknown);
  }
}

void RemoteStore::note_orphan(const Message& message) noexcept {
  if (!message.error && message.decision.allowed) ++orphaned_;
}

/// The subscription at the store, and the callback at this end.
class RemoteStore::Watching final : public Subscription {
 public:
  explicit Watching(std::function<void()> seen)
      : seen_(std::make_shared<const std::function<void()>>(std::move(seen))) {}
  [[nodiscard]] bool start(RemoteStore& store, const Key& key) {
    const std::weak_ptr<RemoteStore> remote = store.alive_;
    there_ = store.inner().subscribe(key, [remote, seen = std::weak_ptr(seen_)] {
      if (const auto self = remote.lock()) self->send({{}, {}, {}, seen}, self->from_store_);
    });
    return there_ != nullptr;
  }

 private:
  std::shared_ptr<const std::function<void()>> seen_;
  std::unique_ptr<Subscription> there_;
};

std::unique_ptr<Subscription> RemoteStore::subscribe(const Key& key,
                                                     std::function<void()> seen) noexcept try {
  if (closed_) return nullptr;
  auto watching = std::make_unique<Watching>(std::move(seen));
  if (!watching->start(*this, key)) return nullptr;
  return watching;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void RemoteStore::notify(const Key& key) noexcept try {
  send({std::string(key.tag()), std::string(key.name()), std::string(key.unit()), {}}, to_store_);
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

void RemoteStore::send(Call call, DelayProcess& delay) noexcept try {
  if (closed_) return;
  const std::uint64_t id = ++last_call_;
  Call& kept = calls_.emplace(id, std::move(call)).first->second;
  kept.timer =
      timeline_.after<&RemoteStore::call_arrives>(delay.sample(timeline_.now(), rng_), *this, id);
} catch (...) {  // no memory, or no place on the timeline
  calls_.erase(last_call_);
}

void RemoteStore::call_arrives(std::uint64_t id) {
  const Call call = std::move(calls_.extract(id).mapped());
  if (const auto seen = call.seen.lock()) return (*seen)();
  if (!call.tag.empty()) inner().notify(Key{call.tag, call.name}.with_unit(call.unit));
}

RemoteStore::Message& RemoteStore::prepare(const Plan& plan) {
  if (free_.empty()) {
    if (free_.capacity() <= messages_.size()) free_.reserve(messages_.size() * 2 + 8);
    messages_.emplace_back(*this, messages_.size());
    free_.push_back(messages_.size() - 1);
  }
  Message& message = messages_[free_.back()];
  const auto steps = plan.steps();
  std::size_t length = 0;
  std::size_t words = 0;
  std::size_t output = 0;
  for (const Step& step : steps) {
    length += step.key.tag().size() + step.key.name().size() + step.key.unit().size();
    words += step.table.size();
    output += output_count(*step.operation, step.table.size());
  }
  message.words.clear();
  message.words.reserve(words);
  message.bytes.clear();
  message.bytes.reserve(length);  // so that the views stay valid
  message.steps.assign(steps.begin(), steps.end());
  for (Step& step : message.steps) {
    const auto keep = [&](std::string_view part) {
      const std::size_t at = message.bytes.size();
      message.bytes += part;
      return std::string_view(message.bytes).substr(at, part.size());
    };
    step.key = Key{keep(step.key.tag()), keep(step.key.name())}.with_unit(keep(step.key.unit()));
    step.binding = nullptr;  // lives only until execute() returns
    const std::size_t at = message.words.size();
    message.words.insert(message.words.end(), step.table.begin(), step.table.end());
    step.table = std::span<const Word>(message.words).subspan(at);
  }
  message.id = plan.id();
  message.arrived = false;
  message.abandoned = false;
  message.error = {};
  message.each.clear();
  message.output.clear();
  message.each.reserve(steps.size());  // so that decided() never allocates
  message.output.reserve(output);
  return message;
}

/// True for this share, in millionths, of the calls.
bool RemoteStore::draw(std::uint32_t share) { return share != 0 && rng_.below(1'000'000) < share; }

void RemoteStore::send(Message& message) {
  const std::size_t index = free_.back();
  const Time arrival =
      std::max(timeline_.now() + to_store_.sample(timeline_.now(), rng_), last_arrival_);
  const LinkFaults faults = link_.faults != nullptr ? *link_.faults : LinkFaults{};
  message.answer_lost = draw(faults.answer_lost);
  message.timer = {};
  if (!faults.cut && !draw(faults.lost)) {
    message.timer = timeline_.at<&RemoteStore::arrive>(arrival, *this, index);
    last_arrival_ = arrival;
  }
}

void RemoteStore::execute(const Plan& plan, Completion done) noexcept {
  if (closed_) return done.fail(Errc::shut_down);
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  if (detail::is_constant(plan)) {
    return detail::answer_constant(plan, timeline_.now(), Source::virtual_store, done);
  }
  if (plan.timeout() < Span{0}) return done.fail(Errc::timed_out);
  try {
    Message& message = prepare(plan);
    send(message);
    const Span timeout = plan.timeout() != Span{0} ? plan.timeout() : link_.timeout;
    message.expiry = {};
    if (timeout != Span{0}) {
      message.expiry = timeline_.after<&RemoteStore::expire>(timeout, *this, message.index);
    }
    free_.pop_back();
    message.under_way = true;
    message.done = std::move(done);
    ++operations_;
  } catch (...) {  // no memory, or no place on the timeline
    if (!free_.empty()) timeline_.cancel(messages_[free_.back()].timer);
    done.fail(Errc::queue_full);
  }
}

void RemoteStore::arrive(std::uint64_t index) {
  if (link_.server == nullptr) return decide(index);
  Message& message = messages_[index];
  switch (link_.server->state()) {
    case StoreServer::State::silent:
      return lose(message);
    case StoreServer::State::refusing:
      message.timer = timeline_.at<&RemoteStore::refuse>(next_delivery(), *this, index);
      return;
    case StoreServer::State::up:
      const Time served = link_.server->serve(timeline_.now());
      message.timer = timeline_.at<&RemoteStore::decide>(served, *this, index);
  }
}

/// When an answer that leaves the store now is here: not before an earlier one.
Time RemoteStore::next_delivery() {
  last_delivery_ =
      std::max(timeline_.now() + from_store_.sample(timeline_.now(), rng_), last_delivery_);
  return last_delivery_;
}

void RemoteStore::refuse(std::uint64_t index) {
  Message& message = messages_[index];
  message.error = Errc::not_connected;
  deliver(index);
}

void RemoteStore::decide(std::uint64_t index) {
  Message& message = messages_[index];
  message.arrived = true;
  Plan plan{std::span<const Step>(message.steps)};
  if (message.id) plan = plan.idempotent(*message.id);
  if (link_.faults != nullptr && draw(link_.faults->doubled)) {
    inner().execute(plan, Completion([](void*, const Outcome&) noexcept {}, nullptr));
  }
  inner().execute(plan, Completion(&RemoteStore::decided, &message));
}

/// Nothing more happens to this message but the end of its call.
void RemoteStore::lose(Message& message) noexcept {
  message.timer = {};
  if (!message.done) release(message);
}

/// The caller has waited long enough; what is under way goes on.
void RemoteStore::expire(std::uint64_t index) {
  Message& message = messages_[index];
  Completion done = std::move(message.done);
  if (message.timer == Timeline::Timer{}) release(message);
  done.fail(Errc::unknown);
}

void RemoteStore::decided(void* context, const Outcome& outcome) noexcept {
  Message& message = *static_cast<Message*>(context);
  RemoteStore& self = message.owner;
  message.error = outcome.error;
  message.decision = outcome.decision;
  message.each.assign(outcome.steps.begin(), outcome.steps.end());
  message.output.assign(outcome.output.begin(), outcome.output.end());
  if (message.abandoned) {
    self.note_orphan(message);
    return self.lose(message);
  }
  if (message.answer_lost || (self.link_.faults != nullptr && self.link_.faults->cut)) {
    return self.lose(message);
  }
  try {
    message.timer =
        self.timeline_.at<&RemoteStore::deliver>(self.next_delivery(), self, message.index);
  } catch (...) {  // no place on the timeline
    self.lose(message);
  }
}

void RemoteStore::deliver(std::uint64_t index) {
  Message& message = messages_[index];
  if (message.done) {
    timeline_.cancel(message.expiry);
    Completion done = std::move(message.done);
    // The message is released afterwards, because it contains the outcome's steps, and the receiver
    // may send.
    done(Outcome{message.error, message.decision, message.each, message.output});
  }
  release(message);
}

void RemoteStore::release(Message& message) noexcept {
  message.under_way = false;
  // Never allocates: prepare() made room.
  free_.push_back(message.index);
}

}  // namespace sluice::sim
