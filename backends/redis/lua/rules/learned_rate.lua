--@ piece learned_rate_check
-- The twin of check() of a pace in src/rules/learned_rate.cpp, with scale() and LearnedRateRule::need(), in its place.
  if
    limit < 1 or limit > word_limit or least < 1 or least > initial or initial > most or most > Rule.max_rate
    or forget < Rule.min_forget or forget > Rule.max_forget
  then
    return Errc.invalid_argument
  end

  -- floor(a * b / c) and the rest, in parts of ten bits of a where the product would leave the whole numbers.
  local function scale(a, b, c)
    if a * b <= word_limit then
      local rest = a * b % c
      return (a * b - rest) / c, rest
    end
    local quotient, rest = 0, 0
    for part = 4, 0, -1 do
      local unit = 1024 ^ part
      local digit = (a - a % unit) / unit
      a = a - digit * unit
      local sum = rest * 1024 + digit * b
      rest = sum % c
      quotient = quotient * 1024 + (sum - rest) / c
    end
    return quotient, rest
  end
  local function need_of(cost, rate)
    local span, rest = scale(cost, 1000000000000, rate)
    if rest > 0 then span = span + 1 end
    if span > Rule.max_need then span = Rule.max_need end
    return span
  end

--@ piece learned_rate_check_amount
-- The twin of check_amount() in src/rules/learned_rate.cpp, up to what follows it, in its place.
--@ use learned_rate_check
  if amount < 0 or amount > Rule.max_cost then return Errc.invalid_cost end

--@ piece learned_rate_view
-- The twins of read(), restart() and measure() in src/rules/learned_rate.cpp, with kept_for(), uncount() and write(), in
-- their place in a rule: from head, now and the pace to the state at one instant.
  local stamp, rate, peak, empty, grown, fell, first, start = unpack(head, 1, 8)
  local current, previous, ceiling, told_until, left, left_until, closed = unpack(head, 9, 15)
  if
    stamp > 0
    and (rate < 1 or rate > Rule.max_rate or peak > Rule.max_rate or ceiling > Rule.max_rate
      or current > Rule.max_count or previous - 1 > Rule.max_count
      or grown > stamp or fell > stamp or first > stamp or start > stamp)
  then
    return Errc.corrupt_state
  end
  local function restart()
    empty, fell, first, current, previous = 0, 0, 0, 0, 0
    told_until, left_until, closed = 0, 0, 0
    grown, start = now, now
  end

  -- measure()
  local at, last = now, stamp + forget
  if closed > last then last = closed end
  if left_until > last then last = left_until end
  if stamp == 0 or now >= last then
    rate, peak, ceiling, left = initial, 0, 0, 0
    restart()
    last = now
  elseif stamp > now + Rule.max_ahead then
    restart()
  elseif stamp > now then
    at = stamp
  end
  local top = most
  if at < told_until and ceiling < top then top = ceiling end
  if rate > top then rate = top end
  if rate < least then rate = least end
  if at - start >= 2 * Rule.minute then
    start, current, previous = at, 0, 0
  elseif at - start >= Rule.minute then
    start, previous, current = start + Rule.minute, current + 1, 0
  end

  local function kept_for(need)
    if 2 * need > Rule.saved then return 2 * need end
    return Rule.saved
  end
  local function uncount(amount, granted)
    if granted >= start then
      current = current - (amount < current and amount or current)
    elseif previous > 0 then
      previous = previous - (amount < previous - 1 and amount or previous - 1)
    end
  end
  local function write()
    stamp = at > 1 and at or 1
    put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8', stamp, rate, peak, empty, grown, fell, first, start, current,
      previous, ceiling, told_until, left, left_until, closed))
  end

--@ piece learned_rate_standing
-- The twin of standing() in src/rules/learned_rate.cpp, in its place in a rule.
  local function standing()
    local kept = kept_for(need_of(1, rate))
    local nothing = at - kept
    if empty > nothing then nothing = empty end
    local units = 0
    if at >= closed and at > nothing then units = scale(at - nothing, rate, 1000000000000) end
    if at < left_until and left < units then units = left end
    if limit < units then units = limit end
    local full = empty + kept
    if closed > full then full = closed end
    if now > full then full = now end
    return units, 0, full - now
  end

--@ piece learned_rate_decide
-- The twin of decide() in src/rules/learned_rate.cpp, up to what it grants, with check_acquire(): in its place in a rule,
-- of which `details()` are the output words.
--@ use learned_rate_check
  if cost < 0 then return Errc.invalid_cost end
  if cost > Rule.max_cost or need_of(cost, least) >= Rule.max_need then return Errc.cost_exceeds_capacity end
--@ use learned_rate_view
--@ use learned_rate_standing
  local remaining, _, reset_after = standing()
  local need = need_of(cost, rate)
  local nothing = at - kept_for(need)
  if empty > nothing then nothing = empty end
  local ready = nothing + need
  if closed > ready then ready = closed end
  if at < left_until and cost > left and left_until > ready then ready = left_until end
  local hint = ready < last and ready or last

--@ operation learned_rate_acquire(head[15] | limit, initial, least, most, forget, cost)
-- The twin of acquire() in src/rules/learned_rate.cpp, with grow(): same names, same order.
--@ use learned_rate_decide
  if ready > at then return 0, remaining, hint - now, reset_after end
  if cost == 0 then return 1, remaining, 0, reset_after end
  if at < left_until then left = left - cost end
  empty = nothing + need
  current = current + cost
  if current > Rule.max_count then current = Rule.max_count end
  -- grow()
  local rest = at - empty
  if first == 0 then
    first, grown = at, at
  elseif rest < need then
    local ms = at - grown
    ms = (ms - ms % 1000) / 1000
    if ms > Rule.step then
      grown, ms = at, Rule.step
    else
      grown = grown + ms * 1000
    end
    local more = scale(rate, ms, 3000)
    if peak > 0 then
      local away
      if peak > rate then away = scale(peak - rate, ms, 6000) else away = scale(rate - peak, ms, 20000) end
      more = scale(peak, ms, 100000)
      if away > more then more = away end
    end
    local faster = rate + more
    if faster > top then faster = top end
    if rate > faster then faster = rate end
    empty = at - scale(rest, rate, faster)
    rate = faster
  end
  write()
  return 1, standing()

--@ operation learned_rate_peek(head[15] | limit, initial, least, most, forget, cost)
-- The twin of peek() in src/rules/learned_rate.cpp: learned_rate_acquire without what that writes.
--@ use learned_rate_decide
  local seen = struct.pack('<i8i8', rate, peak)
  if ready > at then return 0, remaining, hint - now, reset_after, seen end
  return 1, remaining, 0, reset_after, seen

--@ operation learned_rate_limited(head[15] | limit, initial, least, most, forget, amount, granted)
-- The twin of limited() in src/rules/learned_rate.cpp, with accepted() and fall(): same names, same order.
--@ use learned_rate_check_amount
  if granted < 0 or granted > word_limit then return Errc.invalid_argument end
--@ use learned_rate_view
--@ use learned_rate_standing
  uncount(amount, granted)
  local falls = granted > fell and granted <= at
  if falls then
    -- accepted()
    local elapsed = at - start
    elapsed = (elapsed - elapsed % 1000000) / 1000000 + 1
    local accepted
    if previous == 0 then
      accepted = scale(current, 1000000, elapsed)
    else
      accepted = scale(current + scale(previous - 1, 60 - elapsed, 60), 1000000, 60)
    end
    -- fall()
    local before = peak > 0 and peak or rate
    local kept = before < accepted and before or accepted
    local slower = rate - (rate - rate % 20) / 20
    if first > 0 and granted > first then
      peak = rate > kept and rate or kept
    else
      local tells = accepted * 8 >= before
      peak = tells and kept or before
      slower = (rate - rate % 2) / 2
      local floor = tells and (peak - peak % 16) / 16 or 0
      if floor > slower then slower = floor end
      if slower > rate then slower = rate end
    end
    rate = slower > least and slower or least
    if at > empty then empty = at end
    fell, grown, first = at, at, 0
  end
  write()
  local remaining, _, reset_after = standing()
  return 1, remaining, 0, reset_after, struct.pack('<i8', falls and 1 or 0)

--@ operation learned_rate_adjust(head[15] | limit, initial, least, most, forget, amount, change)
-- The twin of adjust() in src/rules/learned_rate.cpp: same names, same order.
--@ use learned_rate_check_amount
  if change ~= 0 and change ~= 1 then return Errc.invalid_argument end
--@ use learned_rate_view
--@ use learned_rate_standing
  local need = need_of(amount, rate)
  if change == 0 then -- refund
    empty = empty > need and empty - need or 0
    uncount(amount, at)
  else -- charge
    local nothing = at - kept_for(need)
    if empty > nothing then nothing = empty end
    nothing = nothing + need
    local latest = at + Rule.max_debt
    if latest > word_limit then latest = word_limit end
    if nothing > latest then nothing = latest end
    if nothing > empty then empty = nothing end
    current = current + amount
    if current > Rule.max_count then current = Rule.max_count end
  end
  if amount > 0 then write() end
  local remaining, _, reset_after = standing()
  return 1, remaining, 0, reset_after, struct.pack('<i8', amount)

--@ operation learned_rate_told(head[15] | limit, initial, least, most, forget, said, remains, reset)
-- The twin of told() in src/rules/learned_rate.cpp: same names, same order.
--@ use learned_rate_check
  if
    said < 0 or said > Rule.max_rate or remains < 0 or remains > word_limit or reset < 0 or reset > Rule.max_block
  then
    return Errc.invalid_argument
  end
--@ use learned_rate_view
--@ use learned_rate_standing
  if said > 0 then
    if at >= told_until or ceiling ~= said then peak = said end
    ceiling, told_until = said, at + forget
    if told_until > word_limit then told_until = word_limit end
    if ceiling < rate then rate = ceiling end
    if most < rate then rate = most end
    if least > rate then rate = least end
  end
  if remains < word_limit then
    if at < left_until then
      if remains < left then left = remains end
    else
      left, left_until = remains, at + reset
      if left_until > word_limit then left_until = word_limit end
    end
  end
  if said > 0 or remains < word_limit then write() end
  return 1, standing()

--@ operation learned_rate_block(head[15] | limit, initial, least, most, forget, length)
-- The twin of block() in src/rules/learned_rate.cpp: same names, same order.
--@ use learned_rate_check
  if length < 0 or length > Rule.max_block then return Errc.invalid_argument end
--@ use learned_rate_view
--@ use learned_rate_standing
  local till = now + length
  if till > word_limit then till = word_limit end
  if length > 0 and till > closed then
    closed = till
    write()
  end
  return 1, standing()

--@ operation learned_rate_reset(head[15] | limit)
-- The twin of reset() in src/rules/learned_rate.cpp: same names, same order.
  if limit < 1 or limit > word_limit then return Errc.invalid_argument end
  put(0, string.rep('\0', 120))
  return 1, limit, 0, 0
