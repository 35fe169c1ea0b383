# Bugs that planted.cmake plants in a copy of one source of the library, each with the judge of sluice-sim that must
# object.
#
#            name            source                             judge
#              what the source says        what it says instead

planted_bug(refills_twice    src/rules/token_bucket_reserve.cpp "the limiter's bound"
  [[const Word elapsed = at - stamp;]]
  [[const Word elapsed = 2 * (at - stamp);]])

planted_bug(close_slots      src/rules/slot_lock.cpp            "the limiter's bound"
  [[const Word next = std::min(slot + args.interval, word_limit);]]
  [[const Word next = std::min(slot + args.interval / 2, word_limit);]])

planted_bug(early_edge       src/rules/sliding_window.cpp       "the limiter's bound"
  [[  const bool blocks = call == Call::block;]]
  [[  if (found.grant - at < 100'000) found.grant = at;
  const bool blocks = call == Call::block;]])

planted_bug(late_window      src/rules/fixed_window.cpp         "the limiter's bound"
  [[(at - b[0]) % args.width]]
  [[(at - b[0] + args.width / 2) % args.width]])

planted_bug(early_hint       src/rules/token_bucket.cpp         "hints are exact"
  [[  words = {state.spent, state.stamp};
  return verdict;]]
  [[  words = {state.spent, state.stamp};
  const Word hint = verdict.retry_after > 1 ? verdict.retry_after - 1 : verdict.retry_after;
  return {verdict.status, verdict.remaining, hint, verdict.reset_after};]])

planted_bug(one_place_more   src/rules/leases.cpp               "no more leases than places"
  [[if (book.fits(lapse, a.limit, a.weight)) return grant(]]
  [[if (book.fits(lapse, a.limit + 1, a.weight)) return grant(]])

planted_bug(short_lease      src/rules/leases.cpp               "no more leases than places"
  [[const Word expiry = std::min(book.at + a.ttl, word_limit);]]
  [[const Word expiry = std::min(book.at + a.ttl / 1000, word_limit);]])

planted_bug(never_released   src/rules/leases.cpp               "no place is left free while jobs wait"
  [[if (slot == 0) return book.granted(lapse, a.limit);]]
  [[return book.granted(lapse, a.limit);]])

planted_bug(gate_ignored     src/rules/gate.cpp                 "nobody passes a closed gate"
  [[if (!m.shut) return {Verdict::allowed, 1, 0, 0};]]
  [[return {Verdict::allowed, 1, 0, 0};]])

planted_bug(last_first       src/waiting/waiter.cpp             "first come, first served"
  [[arrivals.fetch_add(count, std::memory_order_relaxed)]]
  [[arrivals.fetch_sub(count, std::memory_order_relaxed)]])

planted_bug(forgotten        src/waiting/waiter_requests.cpp    "every wait ends once, in time"
  [[      actions = take_answer(error, decision);]]
  [[      if (error == Errc::unknown) return;
      actions = take_answer(error, decision);]])

planted_bug(larger_share     src/stores/fallback_rules.cpp      "grants without the store"
  [[  step.binding = nullptr;]]
  [[  step.binding = nullptr;
  if (clients > 1) --clients;]])
