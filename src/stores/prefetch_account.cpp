#include "src/stores/prefetch_account.hpp"
#include "sluice/extend/operation.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace sluice::prefetch {
namespace {

/// Spent lots are kept for refunds, and a few refusals, each of another cost.
constexpr std::size_t kept_lots = 8;
constexpr std::size_t kept_refusals = 4;

/// The next lot is asked for when this part of the last one is left.
constexpr Word low_part = 4;

/// A key of which fewer units were spent lately is not asked for ahead of need: at such a rate too
/// many units of a lot lapse.
constexpr Word least_demand = 2 * low_part;

/// The part of what is held that a thread gets as its credit.
constexpr Word credit_part = 4;

}  // namespace

void Demand::turn(Time now) noexcept {
  const Span passed = now - start_;
  if (passed >= Span{0} && passed < period_) return;
  previous_ = passed >= period_ && passed < 2 * period_ ? current_ : 0;
  current_ = 0;
  start_ = now - (passed >= period_ && passed < 2 * period_ ? passed - period_ : Span{0});
}

void Demand::note(Word units, Time now) noexcept {
  turn(now);
  current_ = std::min(word_limit, current_ + units);
}

Word Demand::lately(Time now) noexcept {
  turn(now);
  const double covered =
      1 - static_cast<double>((now - start_).count()) / static_cast<double>(period_.count());
  return current_ + static_cast<Word>(static_cast<double>(previous_) * covered);
}

Account::Account(const Step& step, const Terms& terms)
    : terms_(terms),
      tag_size_(step.key.tag().size()),
      name_size_(step.key.name().size()),
      operation_(step.operation),
      args_(step.args),
      limit_(limit_of(step)),
      demand_(std::max(Span{1}, terms.hold / 2)) {
  bytes_.append(step.key.tag()).append(step.key.name()).append(step.key.unit());
  lots_.reserve(2 * kept_lots);
  refusals_.reserve(kept_refusals);
}

bool Account::accepts(const Step& step) noexcept {
  if (step.operation->kind != operation_->kind) return false;
  if (limit_of(step) != limit_) {
    // Another limit of the same key: units that were granted under one are not spent under the
    // other.
    if (!lots_.empty()) return false;
    limit_ = limit_of(step);
    forget_refusals();
  }
  operation_ = step.operation;
  args_ = step.args;
  return true;
}

Step Account::pattern() const noexcept {
  const std::string_view bytes(bytes_);
  return {operation_,
          Key(bytes.substr(0, tag_size_), bytes.substr(tag_size_, name_size_))
              .with_unit(bytes.substr(tag_size_ + name_size_)),
          args_};
}

Word Account::expire(Time now) noexcept {
  const bool set_back = now < latest_;
  latest_ = now;
  if (set_back) forget_refusals();
  Word dropped = set_back ? drop() : 0;
  std::erase_if(lots_, [&](const Lot& lot) {
    if (now < lot.until) return false;
    dropped += lot.units;
    return true;
  });
  std::erase_if(refusals_, [&](const Refusal& one) { return one.until <= now; });
  return dropped;
}

Word Account::drop() noexcept {
  Word dropped = 0;
  for (const Lot& lot : lots_) dropped += lot.units;
  lots_.clear();
  ++epoch_;
  dropped_stamp_ = last_stamp_;
  return dropped;
}

Word Account::held() const noexcept {
  Word sum = 0;
  for (const Lot& lot : lots_) sum += lot.units;
  return sum;
}

Word Account::spendable(Time now) const noexcept {
  Word sum = 0;
  for (const Lot& lot : lots_) {
    if (lot.from <= now && now < lot.until) sum += lot.units;
  }
  return sum;
}

bool Account::is_idle(Time now) const noexcept {
  const Time expected = lots_.empty() ? last_use_ : std::max(last_use_, lots_.back().from);
  return now >= expected + terms_.hold / 2;
}

/// What is held, and what the store told to remain.
Word Account::remaining(Time now) const noexcept {
  return std::min(spendable(now) + (scarce_ ? 0 : remaining_),
                  capacity() > 0 ? capacity() : word_limit);
}

Word Account::capacity() const noexcept { return capacity_ > 0 ? capacity_ : limit_; }

/// The first instant from `now` on at which so many units can be spent.
std::optional<Time> Account::ready_at(Word cost, Time now) const noexcept {
  if (spendable(now) >= cost) return now;
  for (const Lot& lot : lots_) {
    if (lot.from > now && spendable(lot.from) >= cost) return lot.from;
  }
  return std::nullopt;
}

Local Account::refused(Word remaining, Word wait, Time clear_at, Time now) const noexcept {
  const Word clear = std::max(Word{0}, (clear_at - now).count());
  return {{Verdict::refused, std::min(remaining, word_limit), wait, clear}};
}

Local Account::spend(const Request& request, Time ready, Time now) noexcept {
  Lot* first = nullptr;
  Time until = Time::max();
  Word left = request.cost;
  bool is_of_one = false;
  for (Lot& lot : lots_) {
    if (lot.from > ready || lot.until <= ready || lot.units == 0) continue;
    const Word part = std::min(left, lot.units);
    lot.units -= part;
    left -= part;
    until = std::min(until, lot.until);
    if (first == nullptr) {
      first = &lot;
      is_of_one = left == 0;
    }
    if (left == 0) break;
  }
  // Units of several lots have several times, and no single lot may take all of them back. Which
  // grants of a lot were mixed so, their refunds do not tell.
  if (request.refundable && first != nullptr) {
    if (is_of_one) first->refundable += request.cost;
    first->is_shared = first->is_shared || !is_of_one;
  }
  demand_.note(request.cost, now);
  const Word clear = std::max(Word{0}, (clear_at_ - now).count());
  return {{Verdict::allowed, remaining(ready), (ready - now).count(), clear}, first, until};
}

bool Account::take(Word units, Time now) noexcept {
  if (!can_spend(units, now)) return false;
  static_cast<void>(spend({.cost = units, .max_wait = 0}, now, now));
  return true;
}

std::optional<Local> Account::decide(const Request& request, Time now) noexcept {
  last_use_ = now;
  const Time latest = now + Span{request.max_wait};
  if (const auto ready = ready_at(request.cost, now)) {
    if (*ready <= latest) return spend(request, *ready, now);
    unmet_ = std::min(word_limit, unmet_ + request.cost);
    return refused(remaining(now), (*ready - latest).count(), clear_at_, now);
  }
  for (const Refusal& one : refusals_) {
    if (one.cost != request.cost || one.fits_at <= latest) continue;
    unmet_ = std::min(word_limit, unmet_ + request.cost);
    return refused(one.remaining, (one.fits_at - latest).count(), one.clear_at, now);
  }
  return std::nullopt;
}

Account::Part Account::take_part(Word most, Time now) noexcept {
  const Word part = std::min(most, spendable(now) / credit_part);
  for (Lot& lot : lots_) {
    if (lot.from > now || lot.until <= now || lot.units == 0) continue;
    const Word units = std::min(part, lot.units);
    lot.units -= units;
    demand_.note(units, now);
    return {units, lot.until};
  }
  return {};
}

Word Account::put_back(Word units, Time until, Time now) noexcept {
  if (units == 0) return 0;
  if (lots_.size() == lots_.capacity()) {
    std::erase_if(lots_, [](const Lot& lot) { return lot.units == 0; });
  }
  if (until <= now || lots_.size() == lots_.capacity()) return units;
  // Of no known grant, so that they lapse instead of going back to the store.
  lots_.insert(lots_.begin(), {Taken{}, units, units, now, until, 0, ++lots_made_});
  return 0;
}

Word Account::restore(std::uint64_t number, const Request& unused, Time until) noexcept {
  const auto lot = std::find_if(lots_.begin(), lots_.end(),
                                [&](const Lot& one) { return one.number == number; });
  if (lot == lots_.end() || unused.cost > lot->granted - lot->units) return unused.cost;
  lot->units += unused.cost;
  lot->until = std::min(lot->until, until);
  if (unused.refundable) lot->refundable -= std::min(lot->refundable, unused.cost);
  return 0;
}

bool Account::refund(const RefundAsked& refund) noexcept {
  const auto lot = std::find_if(lots_.begin(), lots_.end(), [&](const Lot& one) {
    return one.is_of(refund) && !one.is_shared &&
           refund.amount <= std::min(one.refundable, one.granted - one.units);
  });
  if (lot == lots_.end()) return false;
  lot->units += refund.amount;
  lot->refundable -= refund.amount;
  return true;
}

bool Account::runs_low(Time now) noexcept {
  const Word used = demand_.lately(now);
  return used >= least_demand && held() <= std::min(used, target_) / low_part &&
         refusals_.empty() && now >= quiet_until_;
}

Word Account::need(Word cost) const noexcept {
  const Word short_of = cost - held();
  return short_of > 0 ? short_of : cost;
}

Ask Account::next_ask(Word least, Time now) noexcept {
  const Word used = demand_.lately(now);
  const Word wanted = used + std::min(std::exchange(unmet_, 0), used + least);
  const Word fair =
      scarce_ ? std::min(next_share(), capacity() / fair_part) : remaining_ / fair_part;
  target_ = std::max(Word{0}, std::min({wanted, terms_.most - held(), fair, capacity()}));
  return {least, target_, 0};
}

/// A whole number of units, so that the mean of all is share_.
Word Account::next_share() noexcept {
  const Word whole = static_cast<Word>(share_ + carry_);
  carry_ += share_ - static_cast<double>(whole);
  return whole;
}

/// Where units are reserved ahead, all processes are in one line, whose length every grant tells.
/// The share follows `most` * (1 - line / hold)^2: all see the same line, so shares become equal,
/// and the line becomes as long as the shares of all together.
void Account::note_line(Span wait) noexcept {
  line_ = wait;
  const double free = 1 - static_cast<double>(std::min(wait, terms_.hold).count()) /
                              static_cast<double>(terms_.hold.count());
  const double share = std::max(1.0, static_cast<double>(terms_.most) * free * free);
  share_ += (share - share_) / 4;
}

Account::Added Account::add(const Taken& taken, const Decision& decision, Time sent,
                            Time now) noexcept try {
  const Span wait = decision.retry_after;
  const Time from = instant_of(decision, now) + wait;
  if (lots_.size() >= kept_lots) {
    const auto spent =
        std::find_if(lots_.begin(), lots_.end(), [](const Lot& lot) { return lot.units == 0; });
    if (spent != lots_.end()) lots_.erase(spent);
  }
  Time until = sent + wait + terms_.hold;
  if (until <= std::max(now, from)) return Added::late;
  const bool is_over = sent + Span{taken.lives} <= now;
  until = is_over ? now + Span{1} : std::min(until, sent + wait + Span{taken.lives});
  lots_.push_back(
      {taken, taken.units, taken.units, from, until, to_word(decision.at + wait), ++lots_made_});
  // A reset may lead to the words of a lot before it.
  lots_.back().is_shared = taken.stamp <= dropped_stamp_;
  last_stamp_ = std::max(last_stamp_, taken.stamp);
  scarce_ = wait > Span{0};
  if (scarce_) note_line(wait);
  if (taken.capacity > 0) capacity_ = taken.capacity;
  note_store(decision, now);
  clear_at_ = instant_of(decision, now) + decision.reset_after;
  return is_over ? Added::for_callers : Added::held;
} catch (const std::bad_alloc&) {
  return Added::late;
}

Word Account::drop_last() noexcept {
  const Word units = lots_.back().units;
  lots_.pop_back();
  return units;
}

/// The instant of the store's decision by this process's clock: not before it.
Time Account::instant_of(const Decision& decision, Time now) const noexcept {
  return terms_.same_clock ? decision.at : now;
}

void Account::note_store(const Decision& decision, Time now) noexcept {
  remaining_ = decision.remaining;
  ahead_ = terms_.same_clock ? Span{0} : decision.at - now;
}

void Account::refuse(const Request& request, const Decision& decision, Time now) noexcept {
  const Time at = instant_of(decision, now);
  const Time fits_at = at + decision.retry_after + Span{request.max_wait};
  std::erase_if(refusals_, [&](const Refusal& one) { return one.cost == request.cost; });
  if (refusals_.size() >= kept_refusals) refusals_.erase(refusals_.begin());
  refusals_.push_back({request.cost, fits_at, std::min(fits_at, now + terms_.recheck),
                       decision.remaining, at + decision.reset_after});
  scarce_ = true;
  if (request.max_wait > 0) note_line(Span{request.max_wait});
  note_store(decision, now);
}

}  // namespace sluice::prefetch
