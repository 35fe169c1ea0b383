// PrefetchStore: routes plans to what is held here or to the store behind it.
#include "sluice/prefetch_store.hpp"
#include "sluice/extend/store_wrapper.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "sluice/extend/binding.hpp"
#include "src/stores/prefetch_impl.hpp"
#include "src/util/siphash.hpp"

namespace sluice {
namespace {

void check_range(const char* what, Word value, Word least, Word most, const char* unit) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(std::string("PrefetchStore: ") + what + " must be " +
                              std::to_string(least) + unit + " to " + std::to_string(most) + unit +
                              ", got " + std::to_string(value) + unit);
}

/// Whoever chooses keys must not choose which of them share a shard. In a simulated world the
/// secret comes from its seed.
std::array<std::uint64_t, 2> draw_secret(Clock& clock) {
  SystemRng system;
  Rng* const world = clock.rng(DrawFor::hash);
  Rng& source = world != nullptr ? *world : system;
  const std::uint64_t first = source.next();
  return {first, source.next()};
}

}  // namespace

PrefetchStore::PrefetchStore(const StoreHandle& inner, const PrefetchStoreOptions& options)
    : StoreWrapper(inner) {
  check_range("hold", options.hold.count(), 1, 3'600'000'000, " us");
  check_range("most", options.most, 1, Word{1} << 40, "");
  check_range("recheck", options.recheck.count(), 1, word_limit, " us");
  if (options.max_keys == 0) {
    throw std::invalid_argument("PrefetchStore: max_keys must be 1 or more, got 0");
  }
  impl_ = std::make_unique<Impl>(*this, options);
}

PrefetchStore::~PrefetchStore() {
  end();
  impl_.reset();
}

void PrefetchStore::execute(const Plan& plan, Completion done) noexcept {
  impl_->execute(plan, done);
}
void PrefetchStore::bind(const Key& key, Binding& binding) noexcept { impl_->bind(key, binding); }
PrefetchStats PrefetchStore::stats() const noexcept { return impl_->stats(); }

PrefetchStore::Impl::Impl(PrefetchStore& owner, const PrefetchStoreOptions& options)
    : owner_(owner),
      inner_life_(inner().life()),
      clock_life_(inner().clock().life()),
      options_(options),
      secret_(draw_secret(inner().clock())),
      same_clock_(inner().stamps_by_clock()),
      gate_(std::make_shared<prefetch::Gate<Impl>>()) {
  gate_->object = this;
  ticker_.emplace(
      inner().clock(), std::max(Span{1}, options.hold / 4),
      [](void* self) noexcept { static_cast<Impl*>(self)->give_back_idle(); }, this);
}

PrefetchStats PrefetchStore::Impl::stats() const noexcept {
  return {counts_.local, counts_.trips,    counts_.passed_on,
          counts_.taken, counts_.returned, counts_.lapsed};
}

PrefetchStore::Impl::Hash PrefetchStore::Impl::hash_of(const Key& key) const noexcept {
  return detail::SipHash13(secret_)(key.tag(), key.name(), key.unit());
}

PrefetchStore::Impl::Entry* PrefetchStore::Impl::find(Shard& shard, const Hash& hash) noexcept {
  const auto found = shard.entries.find(hash);
  return found == shard.entries.end() ? nullptr : found->second.get();
}

/// Null: there is no room or memory, or the key has another limit.
PrefetchStore::Impl::Entry* PrefetchStore::Impl::find_or_make(Shard& shard, const Hash& hash,
                                                              const Step& step) noexcept try {
  if (Entry* const known = find(shard, hash)) {
    return known->account.accepts(step) ? known : nullptr;
  }
  if (shard.entries.size() * shard_count >= options_.max_keys + shard_count - 1) {
    const Time now = inner().clock().now();
    if (now < shard.sweep_at) return nullptr;
    shard.sweep_at = now + options_.hold / 4;
    std::erase_if(shard.entries, [&](auto& item) { return is_unused(*item.second, now); });
    if (shard.entries.size() * shard_count >= options_.max_keys + shard_count - 1) return nullptr;
  }
  const prefetch::Account::Terms terms{options_.hold, options_.most, options_.recheck, same_clock_};
  return shard.entries.emplace(hash, std::make_unique<Entry>(step, terms)).first->second.get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

bool PrefetchStore::Impl::is_unused(Entry& entry, Time now) noexcept {
  counts_.lapsed += static_cast<std::uint64_t>(entry.account.expire(now));
  return !entry.credit && !entry.under_way && entry.plans == 0 && entry.waiting.empty() &&
         !entry.account.has_lots() && !entry.account.is_refused() && entry.account.is_idle(now);
}

void PrefetchStore::Impl::execute(const Plan& plan, Completion& done) noexcept {
  if (spend_credit(plan, done)) return;
  const auto steps = plan.steps();
  const bool prefetches = !plan.id() && !is_forked() && plan.timeout() >= Span{0};
  if (prefetches && steps.size() == 1) {
    if (const auto request = prefetch::request_of(steps[0]))
      return decide_one(plan, *request, done);
    if (const auto refund = prefetch::refund_of(steps[0])) {
      if (refund_one(steps[0], *refund, done)) return;
    }
  } else if (prefetches && steps.size() <= Plan::max_steps && !steps.empty()) {
    return decide_plan(plan, done);
  }
  pass_on(plan, done);
}

/// A plan that changes limits, on its way: what was granted or refused before it was executed does
/// not count from its answer on, here and in other processes.
class PrefetchStore::Impl::ChangeCall final : public detail::PassedCall {
 public:
  ChangeCall(Impl& store, const Plan& plan) : impl_(store), plan_(plan) {}

  void answered(const Outcome& outcome) noexcept override {
    if (!prefetch::changed_nothing(plan_.view(), outcome)) {
      impl_.note_changes(plan_.view(), true);
      for (const Step& step : plan_.view().steps()) {
        if (prefetch::changes_limit(*step.operation)) impl_.inner().notify(step.key);
      }
    }
    done(outcome);
  }

 private:
  Impl& impl_;
  OwnedPlan plan_;
};

/// To the store behind, as it is.
void PrefetchStore::Impl::pass_on(const Plan& plan, Completion& done) noexcept {
  ++counts_.passed_on;
  const auto steps = plan.steps();
  const bool changes = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return prefetch::changes_limit(*step.operation);
  });
  if (changes && !is_forked()) return pass_change(plan, done);
  inner().execute(plan, std::move(done));
}

void PrefetchStore::Impl::pass_change(const Plan& plan, Completion& done) noexcept {
  std::unique_ptr<detail::PassedCall> call;
  try {
    call = std::make_unique<ChangeCall>(*this, plan);
    call->done = std::move(done);
    Completion answer = in_flight_.pass(call);
    note_changes(plan, false);
    inner().execute(plan, std::move(answer));
  } catch (const std::bad_alloc&) {
    Completion& left = call ? call->done : done;
    left.fail(Errc::queue_full);
  }
}

void PrefetchStore::Impl::note_changes(const Plan& plan, bool is_answered) noexcept {
  for (const Step& step : plan.steps()) {
    if (!prefetch::changes_limit(*step.operation)) continue;
    if (!is_answered && prefetch::sets_quota(*step.operation)) continue;
    const Hash hash = hash_of(step.key);
    Shard& shard = shard_of(hash);
    const std::lock_guard lock(shard.mutex);
    Entry* const entry = find(shard, hash);
    if (entry == nullptr) continue;
    entry->account.forget_refusals();
    if (prefetch::ends_grants(step)) {
      counts_.lapsed += static_cast<std::uint64_t>(drop(*entry));
    }
  }
}

/// Drops all that is held, whoever has it.
Word PrefetchStore::Impl::drop(Entry& entry) noexcept {
  take_credits(entry, Time::min());
  return entry.account.drop();
}

/// The present, at which everything that is over has been dropped.
Time PrefetchStore::Impl::read_clock(Entry& entry) noexcept {
  const Time now = inner().clock().now();
  if (entry.account.is_before(now)) {  // the clock was set back
    counts_.lapsed += static_cast<std::uint64_t>(drop(entry));
  }
  counts_.lapsed += static_cast<std::uint64_t>(entry.account.expire(now));
  return now;
}

void PrefetchStore::Impl::write(Answer& answer, const Step& step, const prefetch::Local& local,
                                const Entry& entry, Time now) const noexcept {
  Decision& decision = answer.decision;
  decision.allowed = local.verdict.status == Verdict::allowed;
  decision.source = Source::prefetched;
  decision.limit = step.args[0];
  decision.remaining = local.verdict.remaining;
  decision.retry_after = Span{local.verdict.retry_after};
  decision.reset_after = Span{local.verdict.reset_after};
  decision.at = entry.account.store_time(now);
  answer.output_count =
      prefetch::write_output(step, local.lot == nullptr ? nullptr : &local.lot->taken,
                             entry.account.capacity(), answer.output);
}

void PrefetchStore::Impl::Answer::deliver() noexcept {
  if (error) return done.fail(error);
  done({{}, decision, {&decision, 1}, {output.data(), output_count}});
}

void PrefetchStore::Impl::decide_one(const Plan& plan, const prefetch::Request& request,
                                     Completion& done) noexcept {
  const Step& step = plan.steps()[0];
  if (const PlanFault fault = find_fault(plan); fault.error) {
    return done.fail(fault.error, fault.step);
  }
  const bool bound = step.binding != nullptr && step.binding->owner == &owner_;
  const Hash hash = bound ? step.binding->hash : hash_of(step.key);
  Shard& shard = shard_of(hash);
  Lock lock(shard.mutex);
  Entry* const entry = find_or_make(shard, hash, step);
  if (entry == nullptr || !entry->account.may_grant(request.cost)) {
    lock.unlock();
    return pass_on(plan, done);
  }
  const Time now = read_clock(*entry);
  Departure departure;
  if (entry->waiting.empty()) {
    if (!entry->account.can_spend(request.cost, now)) take_credits(*entry, now);
    if (const auto local = entry->account.decide(request, now)) {
      Answer answer;
      write(answer, step, *local, *entry, now);
      if (answer.decision.allowed) give_credit(*entry, step, now);
      if (!entry->under_way && entry->account.runs_low(now)) departure = depart(*entry, now);
      lock.unlock();
      ++counts_.local;
      send(departure);
      answer.done = std::move(done);
      return answer.deliver();
    }
  }
  const bool joined = may_join(*entry, plan) && join(*entry, plan, request, done);
  if (joined && !entry->under_way) {
    departure = depart(*entry, now);
    if (!departure.step) {  // no memory
      done = std::move(entry->waiting.back().answer.done);
      entry->waiting.pop_back();
    }
  }
  lock.unlock();
  if (done) return pass_on(plan, done);
  send(departure);
}

/// A caller with a stop token, or with less time than the trip that is under way, asks alone.
bool PrefetchStore::Impl::may_join(const Entry& entry, const Plan& plan) noexcept {
  if (plan.stop().stop_possible()) return false;
  if (!entry.under_way || plan.timeout() == Span{0}) return true;
  return entry.timeout > Span{0} && plan.timeout() >= entry.timeout;
}

bool PrefetchStore::Impl::join(Entry& entry, const Plan& plan, const prefetch::Request& request,
                               Completion& done) noexcept try {
  const Step& step = plan.steps()[0];
  entry.waiting.push_back({step.operation, step.args, request, plan.timeout()});
  entry.waiting.back().answer.done = std::move(done);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

/// True if the units of this refund were granted here, and are held again.
bool PrefetchStore::Impl::refund_one(const Step& step, const prefetch::RefundAsked& refund,
                                     Completion& done) noexcept {
  if (find_fault(step).error) return false;
  const Hash hash = hash_of(step.key);
  Shard& shard = shard_of(hash);
  Answer answer;
  {
    const std::lock_guard lock(shard.mutex);
    Entry* const entry = find(shard, hash);
    if (entry == nullptr) return false;
    const Time now = read_clock(*entry);
    if (!entry->account.refund(refund)) return false;
    write(answer, step, {{Verdict::allowed, entry->account.remaining(now), 0, 0}}, *entry, now);
    answer.output[0] = refund.amount;
    answer.output[1] = 0;
    answer.output[2] = refund.stamp;
  }
  ++counts_.local;
  answer.done = std::move(done);
  answer.deliver();
  return true;
}

}  // namespace sluice
