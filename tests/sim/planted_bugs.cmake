# Bugs that planted.cmake plants in a copy of one source of the library, each with the judge of sluice-sim that must
# object, and the first of the 100 seeds that `sluice-sim fuzz` runs.
#
#            name            source                             judge                                     first seed
#              what the source says        what it says instead

planted_bug(refills_twice    src/rules/token_bucket_reserve.cpp "the limiter's bound"                     1
  [[const Word elapsed = at - stamp;]]
  [[const Word elapsed = 2 * (at - stamp);]])

planted_bug(early_edge       src/rules/sliding_window.cpp       "the limiter's bound"                     1
  [[  const bool blocks = call == Call::block;]]
  [[  if (found.grant - at < 100'000) found.grant = at;
  const bool blocks = call == Call::block;]])

planted_bug(late_window      src/rules/fixed_window.cpp         "the limiter's bound"                     1
  [[(at - b[0]) % args.width]]
  [[(at - b[0] + args.width / 2) % args.width]])

planted_bug(early_hint       src/rules/token_bucket.cpp         "hints are exact"                         401
  [[  words = {state.spent, state.stamp};
  return verdict;]]
  [[  words = {state.spent, state.stamp};
  const Word hint = verdict.retry_after > 1 ? verdict.retry_after - 1 : verdict.retry_after;
  return {verdict.status, verdict.remaining, hint, verdict.reset_after};]])

planted_bug(one_place_more   src/rules/leases.cpp               "no more leases than places"              101
  [[if (book.fits(lapse, a.limit, a.weight)) return grant(]]
  [[if (book.fits(lapse, a.limit + 1, a.weight)) return grant(]])

planted_bug(short_lease      src/rules/leases.cpp               "no more leases than places"              101
  [[const Word expiry = std::min(book.at + a.ttl, word_limit);]]
  [[const Word expiry = std::min(book.at + a.ttl / 1000, word_limit);]])

planted_bug(never_released   src/rules/leases.cpp               "no place is left free while jobs wait"   1
  [[if (slot == 0) return book.granted(lapse, a.limit);]]
  [[return book.granted(lapse, a.limit);]])

planted_bug(gate_ignored     src/rules/gate.cpp                 "nobody passes a closed gate"             1
  [[if (!m.shut) return {Verdict::allowed, 1, 0, 0};]]
  [[return {Verdict::allowed, 1, 0, 0};]])

planted_bug(last_first       src/waiting/wait_queues.cpp        "first come, first served"                41
  [[return a->place_ < b->place_;]]
  [[return b->place_ < a->place_;]])

planted_bug(forgotten        src/waiting/waiter.cpp             "every wait ends once, in time"           1
  [[    actions = waiter.take_answer(error, decision);]]
  [[    if (error == Errc::unknown) return;
    actions = waiter.take_answer(error, decision);]])

planted_bug(larger_share     src/stores/fallback_rules.cpp      "grants without the store"                101
  [[  step.binding = nullptr;]]
  [[  step.binding = nullptr;
  if (clients > 1) --clients;]])

planted_bug(never_closes     src/stores/circuit_breaker.cpp     "no unit is left unused while jobs wait"  281
  [[    if (result != Result::success) {
      return open(part, result == Result::failure ? draw_pause(part) : Span{0});]]
  [[    if (part.era >= 0) {
      return open(part, draw_pause(part));]])
