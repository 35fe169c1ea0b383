// PrefetchStore: the trips to the store behind it, one at a time for each key.
#include <algorithm>
#include <new>
#include <utility>

#include "sluice/extend/subscription.hpp"
#include "src/stores/prefetch_impl.hpp"

namespace sluice {

using prefetch::Ask;

/// One question for units.
class PrefetchStore::Impl::Trip final : public detail::PassedCall {
 public:
  Trip(Impl& store, Entry& of, const Step& asked, const Ask& units, Stage how, Time now)
      : impl(store),
        entry(of),
        pattern(asked),
        ask(units),
        stage(how),
        sent(now),
        epoch(of.account.epoch()),
        changes(of.account.changes()),
        cost(of.waiting.empty() ? 0 : of.waiting.front().request.cost),
        callers(of.waiting.size()) {
    // Callers are answered by the destructor of the store.
    done = {[](void*, const Outcome&) noexcept {}, nullptr};
  }
  ~Trip() override = default;

  void answered(const Outcome& outcome) noexcept override { impl.answered(*this, outcome); }

  Impl& impl;
  Entry& entry;
  Step pattern;  // the key's bytes are the account's
  Ask ask;
  Stage stage;
  Time sent;
  std::uint64_t epoch, changes;
  Word cost;            // of the first caller; 0: nobody waited
  std::size_t callers;  // that waited
};

/// How far ahead units are reserved: as far as the most patient caller waits, or `hold`.
Word PrefetchStore::Impl::wait_of(const Entry& entry) const noexcept {
  Word wait = options_.hold.count();
  for (const Waiting& one : entry.waiting) wait = std::max(wait, one.request.max_wait);
  return std::min(wait, prefetch::longest_of(entry.account.pattern()));
}

/// The next trip of a key: for the callers that wait, and ahead of need.
PrefetchStore::Impl::Departure PrefetchStore::Impl::depart(Entry& entry, Time now) noexcept {
  prefetch::Account& account = entry.account;
  Word all = 0;
  for (const Waiting& one : entry.waiting) all += one.request.cost;
  const Word least = entry.waiting.empty() ? 0 : account.need(entry.waiting.front().request.cost);
  if (least > 0) all = std::max(least, all - account.held());
  const Word wait = wait_of(entry);
  Ask ask = account.next_ask(least, now);
  const Word capacity = account.capacity() > 0 ? account.capacity() : least;
  all = std::min(all, capacity);
  if (account.is_scarce() && wait > 0) {
    // Callers that wait are not to wait for more than they need, unless that is long anyway.
    if (least > 0) ask.most = account.is_crowded() ? std::max(all, ask.most) : all;
    ask.max_wait = wait;
    return depart(entry, ask, Stage::ahead, now);
  }
  ask.most = std::max(all, ask.most);
  ask.least = std::max(Word{1}, least);
  return depart(entry, ask, Stage::now, now);
}

PrefetchStore::Impl::Departure PrefetchStore::Impl::depart(Entry& entry, const Ask& ask,
                                                           Stage stage, Time now) noexcept {
  Departure departure;
  if (ask.most < 1 || closing_.load(std::memory_order_relaxed)) return departure;  // a hint only
  try {
    const Step pattern = entry.account.pattern();
    std::unique_ptr<detail::PassedCall> trip =
        std::make_unique<Trip>(*this, entry, pattern, ask, stage, now);
    departure.done = in_flight_.pass(trip);
    departure.step = prefetch::take_step(pattern, ask);
    departure.timeout = entry.waiting.empty() ? Span{0} : entry.waiting.front().timeout;
    entry.timeout = departure.timeout;
    entry.under_way = true;
  } catch (const std::bad_alloc&) {
  }
  return departure;
}

void PrefetchStore::Impl::send(Departure& departure) noexcept {
  if (!departure.step) return;
  ++counts_.trips;
  ticker_->arm();
  const Plan plan(*departure.step);
  inner().execute(departure.timeout > Span{0} ? plan.within(departure.timeout) : plan,
                  std::move(departure.done));
}

/// After a refusal: the question of the callers in another form, if that may be granted.
PrefetchStore::Impl::Departure PrefetchStore::Impl::next_stage(const Trip& trip,
                                                               const Outcome& outcome,
                                                               Time now) noexcept {
  Entry& entry = trip.entry;
  if (trip.cost == 0) return {};
  Ask ask = trip.ask;
  const Word remaining = outcome.decision.remaining;
  if (trip.stage == Stage::now && ask.most > ask.least && remaining >= ask.least) {
    ask.most = std::max(ask.least, std::min(ask.most / 2, remaining / prefetch::fair_part));
    return depart(entry, ask, Stage::now, now);
  }
  const Word wait = wait_of(entry);
  const bool asked_needed = trip.stage == Stage::ahead_needed;
  const bool all_were_needed = trip.stage == Stage::ahead && ask.most == ask.least;
  if (wait == 0 || asked_needed || all_were_needed) return {};
  return depart(entry, {ask.least, ask.least, wait}, Stage::ahead_needed, now);
}

/// The trips of one thread that follow each other, because the store answers at once: they are sent
/// in a loop, whose stack does not grow with the number of callers, and before any caller hears of
/// its answer, since that may wait for the next trip.
struct PrefetchStore::Impl::Sending {
  explicit Sending(Impl& store) noexcept : impl(store), outer(innermost) { innermost = this; }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  ~Sending() { innermost = outer; }

  [[nodiscard]] static Sending* of(const Impl& store) noexcept {
    Sending* one = innermost;
    while (one != nullptr && &one->impl != &store) one = one->outer;
    return one;
  }

  Impl& impl;
  Sending* outer;
  Departure next{};
  Queue answers{};
  static thread_local Sending* innermost;
};
thread_local PrefetchStore::Impl::Sending* PrefetchStore::Impl::Sending::innermost = nullptr;

void PrefetchStore::Impl::send_all(Departure departure, Queue& answers) noexcept {
  if (Sending* const before = Sending::of(*this)) {
    before->next = std::move(departure);
    before->answers.splice(before->answers.end(), answers);
    return;
  }
  if (!departure.step) return;
  Sending sending(*this);
  while (departure.step) {
    send(departure);
    departure = std::exchange(sending.next, {});
  }
  answers.splice(answers.end(), sending.answers);
}

void PrefetchStore::Impl::answered(const Trip& trip, const Outcome& outcome) noexcept {
  Entry& entry = trip.entry;
  Shard& shard = shard_of(hash_of(trip.pattern.key));
  Queue answers;
  Departure departure;
  bool is_long = false;
  {
    const std::lock_guard lock(shard.mutex);
    const Time now = read_clock(entry);
    entry.under_way = false;
    take_credits(entry, now);  // before a caller is refused
    if (outcome.error == Errc::cost_exceeds_capacity) {
      // The limit was lowered elsewhere: the callers ask again, for what they need. Or it is not
      // known, and the first caller needs more.
      if (!entry.account.forget_capacity()) fail_first(entry, outcome.error, answers);
    } else if (outcome.error) {
      entry.account.pause(now);
      fail(entry, outcome.error, answers);
    } else if (is_degraded(outcome.decision.source)) {
      entry.account.pause(now);
      pass_degraded(trip, outcome, now, answers);
    } else if (outcome.decision.allowed) {
      grant(trip, outcome, now, answers);
    } else {
      departure = next_stage(trip, outcome, now);
      if (!departure.step) {
        is_long = entry.news == nullptr && outcome.decision.retry_after > options_.recheck;
        refuse(trip, outcome.decision, now, answers);
      }
    }
    const bool asks = !entry.waiting.empty() || entry.account.runs_low(now);
    if (!entry.under_way && asks) departure = depart(entry, now);
    if (!entry.under_way) {
      fail(entry, closing_ ? Errc::unknown : Errc::queue_full, answers);  // else nobody waits
    }
  }
  if (is_long) listen(shard, trip.pattern);
  send_all(std::move(departure), answers);
  for (Waiting& one : answers) one.answer.deliver();
}

void PrefetchStore::Impl::grant(const Trip& trip, const Outcome& outcome, Time now,
                                Queue& answers) noexcept {
  Entry& entry = trip.entry;
  const prefetch::Taken taken = prefetch::taken_by(trip.pattern, trip.ask, outcome);
  counts_.taken += static_cast<std::uint64_t>(taken.units);
  if (trip.epoch != entry.account.epoch()) {
    // A block or a reset came meanwhile, or the clock was set back: the callers ask again.
    counts_.lapsed += static_cast<std::uint64_t>(taken.units);
    return;
  }
  using Added = prefetch::Account::Added;
  const Added added = entry.account.add(taken, outcome.decision, trip.sent, now);
  if (added == Added::late) {
    // The answer came after `hold`: its units must not be spent any more.
    counts_.lapsed += static_cast<std::uint64_t>(taken.units);
    return fail(entry, Errc::unknown, answers);
  }
  settle(entry, now, answers, added == Added::held ? all_callers : trip.callers);
  if (added == Added::for_callers) {
    counts_.lapsed += static_cast<std::uint64_t>(entry.account.drop_last());
  }
}

/// If the limit has changed meanwhile, the refusal is for the callers of this trip alone.
void PrefetchStore::Impl::refuse(const Trip& trip, const Decision& decision, Time now,
                                 Queue& answers) noexcept {
  prefetch::Account& account = trip.entry.account;
  const bool is_news = trip.changes == account.changes();
  const Word cost = trip.cost > 0 ? trip.cost : trip.ask.most;
  account.refuse({cost, trip.ask.max_wait}, decision, now);
  settle(trip.entry, now, answers, is_news ? all_callers : trip.callers);
  if (!is_news) account.forget_refusals();
}

/// Answers the callers that wait, in their order, as far as what is held and known allows.
void PrefetchStore::Impl::settle(Entry& entry, Time now, Queue& answers,
                                 std::size_t most) noexcept {
  for (; most > 0 && !entry.waiting.empty(); --most) {
    Waiting& first = entry.waiting.front();
    if (!entry.account.may_grant(first.request.cost)) {  // known since it began to wait
      fail_first(entry, Errc::cost_exceeds_capacity, answers);
      continue;
    }
    const auto local = entry.account.decide(first.request, now);
    if (!local) return;
    Step step = entry.account.pattern();
    step.operation = first.operation;
    step.args = first.args;
    write(first.answer, step, *local, entry, now);
    answers.splice(answers.end(), entry.waiting, entry.waiting.begin());
  }
}

void PrefetchStore::Impl::fail(Entry& entry, std::error_code error, Queue& answers) noexcept {
  for (Waiting& one : entry.waiting) one.answer.error = error;
  answers.splice(answers.end(), entry.waiting);
}

void PrefetchStore::Impl::fail_first(Entry& entry, std::error_code error, Queue& answers) noexcept {
  if (entry.waiting.empty()) return;
  entry.waiting.front().answer.error = error;
  answers.splice(answers.end(), entry.waiting, entry.waiting.begin());
}

/// Answers the callers as a FallbackStore decided, as far as its grant suffices, with what is held
/// for the rest of a cost. Nothing is held of that grant.
void PrefetchStore::Impl::pass_degraded(const Trip& trip, const Outcome& outcome, Time now,
                                        Queue& answers) noexcept {
  Entry& entry = trip.entry;
  Word left =
      outcome.decision.allowed ? prefetch::taken_by(trip.pattern, trip.ask, outcome).units : 0;
  while (!entry.waiting.empty()) {
    Waiting& one = entry.waiting.front();
    const Word missing = std::max(Word{0}, one.request.cost - left);
    if (outcome.decision.allowed && missing > 0 && !entry.account.take(missing, now)) break;
    left -= one.request.cost - missing;
    Step step = trip.pattern;
    step.operation = one.operation;
    step.args = one.args;
    one.answer.decision = outcome.decision;
    one.answer.decision.limit = one.args[0];
    one.answer.output_count = prefetch::write_output(step, nullptr, 0, one.answer.output);
    answers.splice(answers.end(), entry.waiting, entry.waiting.begin());
  }
  // What is held is for later, and the next trip asks for all that the first caller needs.
  if (answers.empty() && !entry.waiting.empty()) {
    counts_.lapsed += static_cast<std::uint64_t>(drop(entry));
  }
}

/// From now on, changes of the limit in other processes end refusals of this key.
void PrefetchStore::Impl::listen(Shard& shard, const Step& pattern) noexcept {
  const Hash hash = hash_of(pattern.key);
  std::unique_ptr<Subscription> news;
  try {
    news = inner().subscribe(pattern.key, [weak = std::weak_ptr(gate_), hash] {
      const auto gate = weak.lock();
      if (!gate) return;
      const std::lock_guard open(gate->mutex);
      if (gate->object != nullptr) gate->object->forget_refusals(hash);
    });
  } catch (const std::bad_alloc&) {
    return;  // `recheck` ends the refusal
  }
  const std::lock_guard lock(shard.mutex);
  if (Entry* const entry = find(shard, hash)) std::swap(entry->news, news);
}

void PrefetchStore::Impl::forget_refusals(const Hash& hash) noexcept {
  Shard& shard = shard_of(hash);
  const std::lock_guard lock(shard.mutex);
  if (Entry* const entry = find(shard, hash)) entry->account.forget_refusals();
}

}  // namespace sluice
