// The kernel of the leases. Its twin is backends/redis/lua/rules/leases.lua: same names, same
// order, with the members of LeaseTable inlined. lua/fast/leases.lua decides the common requests.
#include "sluice/rules/leases.hpp"

#include "src/rules/lease_table.hpp"

namespace sluice {
namespace {

using Rule = LeasesRule;

constexpr Word invalid_argument = -static_cast<Word>(Errc::invalid_argument);

bool valid_limit(Word limit) noexcept { return limit >= 1 && limit <= word_limit; }
bool valid_ttl(Word ttl) noexcept { return ttl >= Rule::min_ttl && ttl <= Rule::max_ttl; }
bool valid_tier(Word tier) noexcept { return tier >= 0 && tier <= Rule::max_tier; }
bool valid_slot(Word slot) noexcept { return slot >= 0 && slot <= Rule::max_holders; }
bool valid_id(const Word (&id)[3]) noexcept {
  return id[0] >= 0 && id[0] < word_limit && id[1] >= 0 && id[1] < word_limit && id[2] >= 0 &&
         id[2] < (Word{1} << 24);
}

Word check_weight(Word limit, Word weight) noexcept {
  if (!valid_limit(limit)) return invalid_argument;
  if (weight < 1) return -static_cast<Word>(Errc::invalid_cost);
  if (weight > limit) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return Verdict::allowed;
}

Word check(const Rule::AcquireArgs& a) noexcept {
  if (const Word status = check_weight(a.limit, a.weight); status < 0) return status;
  const bool valid = valid_ttl(a.ttl) && valid_tier(a.tier) && (a.seek == 0 || a.seek == 1);
  return valid && valid_id(a.id) ? Verdict::allowed : invalid_argument;
}
Word check(const Rule::ReleaseArgs& a) noexcept {
  const bool valid = valid_limit(a.limit) && valid_slot(a.slot);
  return valid && valid_id(a.id) ? Verdict::allowed : invalid_argument;
}
Word check(const Rule::RenewArgs& a) noexcept {
  const bool valid = valid_limit(a.limit) && valid_ttl(a.ttl) && valid_slot(a.slot);
  return valid && valid_id(a.id) ? Verdict::allowed : invalid_argument;
}
Word check(const Rule::BlockArgs& a) noexcept {
  const bool valid =
      a.limit >= 1 && a.limit <= Rule::block_weight && a.span >= 0 && a.span <= Rule::max_block;
  return valid ? Verdict::allowed : invalid_argument;
}
Word check(const Rule::PeekArgs& a) noexcept {
  if (const Word status = check_weight(a.limit, a.weight); status < 0) return status;
  return valid_tier(a.tier) ? Verdict::allowed : invalid_argument;
}

template <class Args>
Word check_args(const Arguments& args) noexcept {
  return check(detail::unpack<Args>(args));
}
Word check_limit(const Arguments& args) noexcept {
  return valid_limit(args[0]) ? Verdict::allowed : invalid_argument;
}

/// Writes a lease to a free slot.
Word enter(LeaseTable& book, Word weight, Word expiry, const Word (&id)[3], Word fence) noexcept {
  const Word slot = book.pop();
  const LeasePlace place = book.place(expiry, 0);
  if (fence > word_limit || book.head.used > word_limit - weight) book.call_corrupt();
  const Word words[Rule::record_words]{weight, place.before, expiry, place.after,
                                       id[0],  id[1],        id[2],  fence};
  for (Word i = 0; i < Rule::record_words; ++i) book.put(slot, i, words[i]);
  book.join(slot, place, expiry);
  book.head.used += weight;
  return slot;
}

/// Moves a lease to a later expiry.
void prolong(LeaseTable& book, Word slot, const LeaseTable::Record& record, Word expiry) noexcept {
  const LeasePlace place = book.place(expiry, slot);
  if (place.after == slot) {
    book.put(slot, Rule::expiry, expiry);
    return;
  }
  book.unlink(slot, record);
  book.join(slot, place, expiry);
  book.put(slot, Rule::next, place.before);
  book.put(slot, Rule::expiry, expiry);
  book.put(slot, Rule::prev, place.after);
}

Verdict grant(LeaseTable& book, Lapse lapse, const Rule::AcquireArgs& a, Word now,
              Effects& effects) noexcept {
  book.reclaim(lapse);
  const Word expiry = std::min(book.at + a.ttl, word_limit);
  book.head.fence = std::max(book.head.fence + 1, now);
  const Word slot = enter(book, a.weight, expiry, a.id, book.head.fence);
  book.write();
  for (const Word told : {a.tier, slot, book.head.fence, expiry - book.head.ahead}) {
    effects.add_output(told);
  }
  return {Verdict::allowed, book.remaining(lapse, a.limit), 0, book.head.latest - book.base};
}

}  // namespace

Verdict LeasesRule::acquire(const StateView& state, const RuleRequest& request, Word now,
                            Effects& effects) noexcept {
  const auto a = detail::unpack<AcquireArgs>(request.args);
  if (const Word status = check(a); status < 0) return {status, 0, 0, 0};
  LeaseTable book(state, now, effects);
  if (a.seek == 1) {
    if (const Word slot = book.find(0, a.id); slot != 0) {
      const LeaseTable::Record known = book.record(slot);
      for (const Word told : {a.tier, slot, known.fence, known.node.expiry - book.head.ahead}) {
        effects.add_output(told);
      }
      return book.granted(book.lapsed(a.limit, 0), a.limit);
    }
  }
  const Lapse lapse = book.lapsed(a.limit, a.weight);
  if (book.fits(lapse, a.limit, a.weight)) return grant(book, lapse, a, now, effects);
  for (const Word told : {a.tier, Word{0}, Word{0}, Word{0}}) effects.add_output(told);
  return book.refused(lapse, a.limit, a.weight);
}

Verdict LeasesRule::release(const StateView& state, const RuleRequest& request, Word now,
                            Effects& effects) noexcept {
  const auto a = detail::unpack<ReleaseArgs>(request.args);
  if (const Word status = check(a); status < 0) return {status, 0, 0, 0};
  LeaseTable book(state, now, effects);
  const Lapse lapse = book.lapsed(a.limit, 0);
  const Word slot = book.find(a.slot, a.id);
  effects.add_output(slot == 0 ? 0 : 1);
  if (slot == 0) return book.granted(lapse, a.limit);
  const LeaseTable::Record record = book.record(slot);
  if (record.node.weight > book.head.used - lapse.weight) book.call_corrupt();
  if (book.head.first == book.head.tail) {
    book.clear();
  } else {
    book.unlink(slot, record);
    book.push(slot);
    book.head.used -= record.node.weight;
  }
  book.write();
  return {Verdict::allowed, book.remaining(lapse, a.limit), 0,
          std::max(Word{0}, book.head.latest - book.base)};
}

Verdict LeasesRule::renew(const StateView& state, const RuleRequest& request, Word now,
                          Effects& effects) noexcept {
  const auto a = detail::unpack<RenewArgs>(request.args);
  if (const Word status = check(a); status < 0) return {status, 0, 0, 0};
  LeaseTable book(state, now, effects);
  const Lapse lapse = book.lapsed(a.limit, 0);
  const Word slot = book.find(a.slot, a.id);
  if (slot == 0) {
    effects.add_output(0);
    effects.add_output(0);
    return {Verdict::refused, book.remaining(lapse, a.limit), 0, book.reset_after(lapse)};
  }
  const LeaseTable::Record record = book.record(slot);
  const Word expiry = std::max(record.node.expiry, std::min(book.at + a.ttl, word_limit));
  effects.add_output(record.fence);
  effects.add_output(expiry - book.head.ahead);
  if (expiry == record.node.expiry) return book.granted(lapse, a.limit);
  prolong(book, slot, record, expiry);
  book.write();
  return {Verdict::allowed, book.remaining(lapse, a.limit), 0, book.head.latest - book.base};
}

Verdict LeasesRule::peek(const StateView& state, const RuleRequest& request, Word now,
                         Effects& effects) noexcept {
  const auto a = detail::unpack<PeekArgs>(request.args);
  if (const Word status = check(a); status < 0) return {status, 0, 0, 0};
  const LeaseTable book(state, now, effects);
  effects.add_output(a.tier);
  const Lapse lapse = book.lapsed(a.limit, a.weight);
  return book.fits(lapse, a.limit, a.weight) ? book.granted(lapse, a.limit)
                                             : book.refused(lapse, a.limit, a.weight);
}

Verdict LeasesRule::block(const StateView& state, const RuleRequest& request, Word now,
                          Effects& effects) noexcept {
  const auto a = detail::unpack<BlockArgs>(request.args);
  if (const Word status = check(a); status < 0) return {status, 0, 0, 0};
  LeaseTable book(state, now, effects);
  Lapse lapse = book.lapsed(a.limit, 0);
  const Word slot = book.find(0, block_id);
  const Word until = std::min(book.at + a.span, word_limit);
  if (a.span == 0) return book.granted(lapse, a.limit);
  if (slot != 0) {
    const LeaseTable::Record record = book.record(slot);
    if (record.node.expiry >= until) return book.granted(lapse, a.limit);
    prolong(book, slot, record, until);
  } else {
    const bool has_room = book.has_room() || lapse.count > 0;
    const Word used = lapse.first == 0 ? 0 : book.head.used;  // reclaim() may leave expired leases
    if (!has_room || used > word_limit - block_weight) {
      return {Verdict::refused, book.remaining(lapse, a.limit), 0, book.reset_after(lapse)};
    }
    book.reclaim(lapse);
    enter(book, block_weight, until, block_id, 0);
  }
  book.write();
  return {Verdict::allowed, 0, 0, book.head.latest - book.base};
}

Verdict LeasesRule::reset(const StateView& state, const RuleRequest& request, Word now,
                          Effects& effects) noexcept {
  const Word limit = request.args[0];
  if (const Word status = check_limit(request.args); status < 0) return {status, 0, 0, 0};
  LeaseTable book(state, now, effects);
  if (book.head.slots != 0) {
    book.clear();
    book.at = state[1];  // without leases the state's time is the clock's
    book.head.ahead = state[2];
    book.write();
  }
  return {Verdict::allowed, limit, 0, 0};
}

namespace {

/// The stamp may be ahead of the clock by max_ahead when an expiry is counted from it.
/// After the clock was set back, the span counts from the latest time of the key.
Word kept_for(Word span) noexcept { return span + Rule::max_ahead + Operation::clock_slack; }
Word ttl_acquired(const Arguments& args) noexcept { return kept_for(args[2]); }
Word ttl_renewed(const Arguments& args) noexcept { return kept_for(args[1]); }
Word ttl_blocked(const Arguments& args) noexcept { return kept_for(args[1]); }
/// It extends no lease.
Word no_ttl(const Arguments& /*args*/) noexcept { return 0; }

}  // namespace

constinit const Operation leases_acquire{
    .name = "leases.acquire",
    .id = 32,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 8,
    .check = check_args<Rule::AcquireArgs>,
    .ttl = ttl_acquired,
    .decide = Rule::acquire,
    .output = 4,
    .names_part = true,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .charge_output = {.first = 2, .count = 1},
    .arguments = {{.index = 1, .name = "weight", .role = Argument::Role::cost}},
};
constinit const Operation leases_release{
    .name = "leases.release",
    .id = 33,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 5,
    .check = check_args<Rule::ReleaseArgs>,
    .ttl = no_ttl,
    .decide = Rule::release,
    .output = 1,
    .without_store = Operation::WithoutStore::local_lease,
    .share = Operation::Share::limit,
};
constinit const Operation leases_renew{
    .name = "leases.renew",
    .id = 34,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 6,
    .check = check_args<Rule::RenewArgs>,
    .ttl = ttl_renewed,
    .decide = Rule::renew,
    .output = 2,
    .without_store = Operation::WithoutStore::local_lease,
    .share = Operation::Share::limit,
};
constinit const Operation leases_peek{
    .name = "leases.peek",
    .id = 35,
    .kind = StateKind::leases,
    .writes = false,
    .argument_count = 3,
    .check = check_args<Rule::PeekArgs>,
    .ttl = no_ttl,
    .decide = Rule::peek,
    .output = 1,
    .names_part = true,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::limit,
    .arguments = {{.index = 1, .name = "weight", .role = Argument::Role::cost}},
};
constinit const Operation leases_reset{
    .name = "leases.reset",
    .id = 36,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 1,
    .check = check_limit,
    .ttl = no_ttl,
    .decide = Rule::reset,
};
constinit const Operation leases_block{
    .name = "leases.block",
    .id = 37,
    .kind = StateKind::leases,
    .writes = true,
    .argument_count = 2,
    .check = check_args<Rule::BlockArgs>,
    .ttl = ttl_blocked,
    .decide = Rule::block,
    .arguments = {{.index = 1, .name = "span", .unit = "us"}},
};

}  // namespace sluice
