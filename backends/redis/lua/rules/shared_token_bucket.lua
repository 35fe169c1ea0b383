--@ piece shared_token_bucket_view
-- The twin of shared_moment() in src/rules/shared_token_bucket_view.hpp, in its place in a rule: from head, now
-- and keep_alive to the bucket at one instant. No quota if the version is 0. If the stamp lies too far ahead,
-- the bucket is as it was written, and given_up.
  local version, capacity, refill, period, level, spent, stamp =
    head[1], head[2], head[3], head[4], head[5], head[6], head[7]
  local at, given_up = now, false
  local constant = capacity == 0 or capacity == word_limit
  if version == 0 or now >= stamp + keep_alive then
    version = 0
  elseif refill < 1 or refill >= word_limit or period < 1 or
    (constant and 1 or capacity) * period > word_limit - refill then
    return Errc.corrupt_state
  else
    local most_ahead = Rule.max_ahead
    if constant or level > capacity * period - period then most_ahead = most_ahead * 2 end
    given_up = stamp > now + most_ahead
  end
  if version ~= 0 and not given_up then
    if stamp > at then at = stamp end
    local drained = (at - stamp) * refill
    level = level - drained
    if level < 0 then level = 0 end
    if spent < word_limit then -- more than can be counted does not drain
      spent = spent - drained
      if spent < 0 then spent = 0 end
    end
  end

--@ piece shared_token_bucket_place
-- The twin of place() in src/rules/token_bucket_position.hpp, behind shared_token_bucket_view and `limit`; and what the
-- bucket becomes when it is written.
  local new_level, new_stamp, new_spent = level, at, spent
  local function place(level, at)
    if level <= limit then return level, at end
    local over = level - limit
    local stamp = at + (over + -over % refill) / refill
    if stamp > word_limit then stamp = word_limit end
    level = level - (stamp - at) * refill
    if level < limit - period + 1 then level = limit - period + 1 end
    if level > limit then level = limit end
    return level, stamp
  end

--@ operation shared_token_bucket_configure(head[7] | new_capacity, new_refill, new_period, keep_alive, inheritance, if_absent)
-- The twin of the kernel of shared_token_bucket.configure in src/rules/shared_token_bucket.cpp: same names, same
-- order, with moment(), inherited() and is_same() in their place. a * b / c, at most word_limit, rounded down and up:
-- the product has up to 104 bits and is divided bit by bit.
local function scaled(a, b, c)
  local quotient = (a - a % c) / c * b
  if quotient >= word_limit then return word_limit, word_limit end
  a = a % c
  if a == 0 then return quotient, quotient end
  local part, rest, bit = 0, 0, word_limit
  while bit >= 1 do
    part, rest = part * 2, rest * 2
    if rest >= c then
      part, rest = part + 1, rest - c
    end
    if b % (bit * 2) >= bit then
      rest = rest + a
      if rest >= c then
        part, rest = part + 1, rest - c
      end
    end
    bit = bit / 2
  end
  quotient = quotient + part
  if quotient >= word_limit then return word_limit, word_limit end
  if rest > 0 then return quotient, quotient + 1 end
  return quotient, quotient
end
  local new_constant = (new_capacity == 0 or new_capacity == word_limit) and new_refill == 1 and
    new_period == 1
  if not new_constant and (new_capacity < 1 or new_refill < 1 or new_refill >= word_limit or
    new_period < 1 or new_capacity * new_period > word_limit - new_refill or
    (keep_alive - 1) * new_refill < new_capacity * new_period) then
    return Errc.invalid_argument
  end
  if keep_alive < 1 or keep_alive > Rule.max_keep_alive or
    inheritance < 0 or inheritance > 3 or if_absent < 0 or if_absent > 1 then
    return Errc.invalid_argument
  end
--@ use shared_token_bucket_view

  local is_new, is_same = 0, version ~= 0 and inheritance ~= 3 and capacity == new_capacity and
    (constant or refill == new_refill and period == new_period)
  if version == 0 or (if_absent == 0 and not is_same) then
    is_new = 1
    local new_version, new_level, new_spent = 1, 0, 0
    if version ~= 0 and version < word_limit then new_version = version + 1 end
    if version ~= 0 and new_constant then
      new_refill, new_period, new_level, new_spent = refill, period, level, spent
    elseif version ~= 0 then
      local limit, next_limit = capacity * period, new_capacity * new_period
      local free, as_is, up = limit - level, 0, 0
      if constant then
        up, as_is = scaled(level, new_period, period)
      elseif free < 0 then
        as_is, up = scaled(-free, new_period, period)
        as_is = next_limit + up
        if as_is > word_limit then as_is = word_limit end
      else
        as_is = next_limit - scaled(free, new_period, period)
        if as_is < 0 then as_is = 0 end
      end
      if inheritance == 0 then -- as_is
        new_level = as_is
      elseif inheritance == 1 then -- proportional
        new_level = as_is
        if free >= 0 and not constant then new_level = next_limit - scaled(free, next_limit, limit) end
      elseif inheritance == 2 then -- additive
        up, new_level = scaled(level, new_period, period)
      end
      local least = as_is
      new_spent = spent
      if spent < word_limit then
        up, new_spent = scaled(spent, new_period, period)
        least = new_spent
        if capacity > new_capacity and not constant then least = least - (capacity - new_capacity) * new_period end
      end
      if at > now and (constant or level > limit - period) and least < next_limit then least = next_limit end
      if new_level < least then new_level = least end
      if new_level > word_limit then new_level = word_limit end
      local lasting = (keep_alive - 1) * new_refill
      if new_level > lasting then new_level = lasting end
    end
    version, capacity, refill, period = new_version, new_capacity, new_refill, new_period
    level, spent, constant = new_level, new_spent, new_constant
  end
  if is_new == 1 or (if_absent == 0 and not given_up) then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, level, spent, at))
  end

  local output = struct.pack('<i8i8', version, is_new)
  if constant then return 1, capacity, 0, 0, output end
  local free = capacity * period - level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, 0, at - now + (level + -level % refill) / refill, output

--@ piece shared_token_bucket_check
-- The twin of check_shared_cost() in src/rules/shared_token_bucket_view.hpp in its place in a rule.
  if cost < 0 then return Errc.invalid_cost end
  if cost > word_limit then return Errc.cost_exceeds_capacity end
  if reported < 0 or reported > word_limit or keep_alive < 1 or
    keep_alive > Rule.max_keep_alive then
    return Errc.invalid_argument
  end

--@ piece shared_token_bucket_ask
-- From the state and the cost to the bucket at one instant, its limit and what is asked, `charge`; ends the rule if
-- there is no quota or if it can never admit so much. After the clock was set back there is room for one request.
--@ use shared_token_bucket_view
  if version == 0 then return Errc.not_configured end
  if cost > capacity and not constant then return Errc.cost_exceeds_capacity end

  local limit, charge = capacity * period, cost * period
  if given_up and not constant and level > limit - charge then level = limit - charge end

--@ piece shared_token_bucket_constant
-- The twin of constant_verdict() and keep_constant() in src/rules/shared_token_bucket_view.hpp in their place in a rule:
-- ends it, with `output`, if the stored quota is never or unlimited.
  if constant and capacity == 0 and cost > 0 then return 0, 0, word_limit, 0, output end
  if constant then
    if spends and cost > 0 then
      put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, level, spent, at))
    end
    return 1, capacity, 0, 0, output
  end

--@ piece shared_token_bucket_decide
-- The twin of the beginning of answer() in src/rules/shared_token_bucket.cpp, with moment() and shared_wait(), in its
-- place in a rule: ends it if it refuses.
--@ use shared_token_bucket_check
--@ use shared_token_bucket_ask
  local output = struct.pack('<i8i8i8i8', version, capacity, refill, period)
--@ use shared_token_bucket_constant
  local want = level + charge
  if want > limit or (at > now and level > limit - period) then
    local free, over = limit - level, want - limit
    if free < 0 then free = 0 end
    if over < 0 then over = 0 end
    return 0, (free - free % period) / period, at - now + (over + -over % refill) / refill,
      at - now + (level + -level % refill) / refill, output
  end

--@ piece shared_token_bucket_answer
-- The end of answer(): what a request is told that is allowed.
  local free = limit - level
  return 1, (free - free % period) / period, 0, at - now + (level + -level % refill) / refill,
    output

--@ piece shared_token_bucket_left
-- The twin of left_so() in src/rules/shared_token_bucket_reserve.cpp in its place in a rule.
  local free = limit - new_level
  if free < 0 then free = 0 end
  local remaining = (free - free % period) / period
  local reset_after = new_stamp - now + (new_level + -new_level % refill) / refill

--@ operation shared_token_bucket_acquire(head[7] | reported, cost, keep_alive)
-- The twin of the kernel of shared_token_bucket.acquire in src/rules/shared_token_bucket.cpp.
  local spends = true
--@ use shared_token_bucket_decide
  if cost > 0 then
    spent = spent + charge
    if spent > word_limit then spent = word_limit end
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, want, spent, at))
  end
  level = want
--@ use shared_token_bucket_answer

--@ operation shared_token_bucket_peek(head[7] | reported, cost, keep_alive)
-- The twin of the kernel of shared_token_bucket.peek in src/rules/shared_token_bucket.cpp. Writes nothing.
  local spends = false
--@ use shared_token_bucket_decide
--@ use shared_token_bucket_answer

--@ operation shared_token_bucket_reserve(head[7] | reported, cost, keep_alive, max_wait)
-- The twin of the kernel of shared_token_bucket.reserve in src/rules/shared_token_bucket_reserve.cpp: same
-- names, same order, with shared_moment(), place(), truly() and left_so() in their place.
--@ use shared_token_bucket_check
  if max_wait < 0 or max_wait > Rule.max_ahead then return Errc.invalid_argument end
--@ use shared_token_bucket_ask
  local spends, output = true, struct.pack('<i8i8i8i8i8i8', 0, 0, 0, 0, 0, capacity)
  if constant and capacity > 0 then
    output = struct.pack('<i8i8i8i8i8i8', cost, 0, 0, 0, 0, capacity)
  end
--@ use shared_token_bucket_constant

  local want, wait = level + charge, 0
  local over = want - limit
  if over < 0 then over = 0 end
  if over > 0 or (at > now and level > limit - period) then -- shared_wait()
    wait = at - now + (over + -over % refill) / refill
  end
  if wait > max_wait then
    local free = limit - level
    if free < 0 then free = 0 end
    return 0, (free - free % period) / period, wait - max_wait,
      at - now + (level + -level % refill) / refill, output
  end
  local new_level, new_stamp, before = want, at, spent
  if over > 0 then
    new_stamp = at + (over + -over % refill) / refill
    if new_stamp > word_limit then new_stamp = word_limit end
    new_level = want - (new_stamp - at) * refill
    if new_level < limit - period + 1 then new_level = limit - period + 1 end
    if new_level > limit then new_level = limit end
  end
  if spent < word_limit then
    spent = spent - (new_stamp - at) * refill
    if spent < 0 then spent = 0 end
  end
  spent = spent + charge
  if spent > word_limit then spent = word_limit end
  if cost > 0 then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level, spent,
      new_stamp))
  end
--@ use shared_token_bucket_left
  return 1, remaining, wait, reset_after,
    struct.pack('<i8i8i8i8i8i8', cost, level, at, version, before, capacity)

--@ operation shared_token_bucket_refund(head[7] | reported, cost, keep_alive, amount, level_then, stamp_then, version_then, spent_then)
-- The twin of the kernel of shared_token_bucket.refund in src/rules/shared_token_bucket_reserve.cpp: same
-- names, same order, with shared_moment(), returned(), lowered() and left_so() in their place.
  if amount < 0 then return Errc.invalid_cost end
--@ use shared_token_bucket_check
  if amount > cost or level_then < 0 or level_then > word_limit or stamp_then < 0 or
    stamp_then > word_limit or version_then < 0 or version_then > word_limit or spent_then < 0 or
    spent_then > word_limit then
    return Errc.invalid_argument
  end
--@ use shared_token_bucket_view
  if version == 0 then return Errc.not_configured end
  if constant then return 1, capacity, 0, 0, struct.pack('<i8i8i8', 0, 0, 0) end

  local limit = capacity * period
--@ use shared_token_bucket_place

  local known = version_then == version and not given_up and cost <= capacity
  local own, back = 0, 0
  if known then own, back = cost * period, amount * period end
  local grant_level, grant_stamp = place(level_then + own, stamp_then)
  local rest_level, rest_stamp = level_then, stamp_then
  if own > back then rest_level, rest_stamp = place(level_then + own - back, stamp_then) end
  local waits = at > now and level > limit - period -- is_closed()
  local is_last = known and waits and head[5] == grant_level and stamp == grant_stamp
  local given = 0
  if is_last then
    given = back
    if given > 0 then -- returned()
      new_level, new_stamp, new_spent = rest_level, rest_stamp, spent_then
      if new_stamp < now then new_stamp = now end
      new_level = new_level - (new_stamp - rest_stamp) * refill
      if new_level < 0 then new_level = 0 end
      if new_spent < word_limit then
        new_spent = new_spent - (new_stamp - stamp_then) * refill
        if new_spent < 0 then new_spent = 0 end
      end
      new_spent = new_spent + own - back
      if new_spent > word_limit then new_spent = word_limit end
      put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level,
        new_spent, new_stamp))
    end
  elseif known and not waits and stamp >= grant_stamp then
    given = own - (stamp - grant_stamp) * refill
    if given > back then given = back end
    if given > level then given = level end
    if given < 0 then given = 0 end
    new_level = level - given
    if given > 0 then -- lowered()
      new_spent = head[6]
      if new_spent < word_limit then new_spent = new_spent - given end
      if new_spent < 0 then new_spent = 0 end
      put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, head[5] - given,
        new_spent, stamp))
    end
  end
--@ use shared_token_bucket_left
  return 1, remaining, 0, reset_after,
    struct.pack('<i8i8i8', (given - given % period) / period,
      is_last and 1 or 0, rest_stamp)

--@ operation shared_token_bucket_adjust(head[7] | reported, change, keep_alive, amount)
-- The twin of the kernel of shared_token_bucket.adjust in src/rules/shared_token_bucket_reserve.cpp: same
-- names, same order, with shared_moment(), rewarded(), charged(), blocked() and left_so() in their place.
  if reported < 0 or reported > word_limit or change < 0 or change > 3 or keep_alive < 1 or
    keep_alive > Rule.max_keep_alive then return Errc.invalid_argument end
  if amount < 0 or amount > word_limit or (change == 3 and amount > Rule.max_ahead) then
    if change == 3 then return Errc.invalid_argument end
    return Errc.invalid_cost
  end
--@ use shared_token_bucket_view
  if version == 0 then return Errc.not_configured end
  if constant then return 1, capacity, 0, 0, struct.pack('<i8i8i8', version, capacity, 0) end

  local limit = capacity * period
  local units = amount * period
  if amount > (word_limit - word_limit % period) / period then
    units = word_limit
  end
  if given_up and level > limit then level = limit end
--@ use shared_token_bucket_place
  local function truly(elapsed)
    if spent == word_limit then return spent end
    local left = spent - elapsed * refill
    if left < 0 then left = 0 end
    return left
  end

  if change == 0 then -- reset
    new_level, new_stamp, new_spent = 0, now, 0
  elseif change == 1 then -- reward
    local base = at
    if at > now and level > limit - period then base = now end
    local ahead = at - base
    local left, given = level + ahead * refill, 0
    if ahead * refill <= word_limit - level then given = units end
    if given > left then given = left end
    if given > 0 then
      new_level, new_stamp = level - given, at
      if new_level < limit then new_level, new_stamp = place(left - given, base) end
      if spent < word_limit then
        new_spent = spent - given
        if new_spent < 0 then new_spent = 0 end
        new_spent = new_spent + (at - new_stamp) * refill
        if new_spent > word_limit then new_spent = word_limit end
      end
    end
  elseif change == 2 then -- charge
    local last = now + Rule.max_ahead
    local _, before = place(level, at)
    local want = level + units
    if want > word_limit then want = word_limit end
    new_level, new_stamp = place(want, at)
    if new_stamp > last then
      new_level, new_stamp = limit, last
      if before >= last then new_level, new_stamp = level, at end
    end
    local elapsed, over, fits = new_stamp - at, 0, limit - level
    if fits < 0 then
      over = (level - limit - (level - limit) % refill) / refill
      fits = 0
    end
    if over > elapsed then over = elapsed end
    if fits > units then fits = units end
    new_spent = truly(over) + fits
    if new_spent > word_limit then new_spent = word_limit end
    local least = truly(elapsed) + units
    if least > limit then least = limit end
    if least > new_spent then new_spent = least end
  elseif amount > 0 then -- block
    local last = now + amount - 1
    if last > word_limit then last = word_limit end
    if last > at then new_stamp = last end
    local least = limit - period + 1
    if last >= at then
      least = limit - period + refill
      if least > limit then least = limit end
    end
    new_level = level - (new_stamp - at) * refill
    if new_level < 0 then new_level = 0 end
    if new_level < least then
      new_level = least
    elseif new_level == limit and new_stamp < now + Rule.max_ahead then
      new_level, new_stamp = place(limit + 1, new_stamp)
    elseif new_level < word_limit then
      new_level = new_level + 1
    end
    new_spent = truly(new_stamp - at)
  end
  put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level, new_spent,
    new_stamp))
  local more = 0
  if change == 2 then
    more = new_level - level + (new_stamp - at) * refill
    more = (more - more % period) / period
    if more > amount then more = amount end
    if more < 0 then more = 0 end
  end
--@ use shared_token_bucket_left
  return 1, remaining, 0, reset_after,
    struct.pack('<i8i8i8', version, capacity, more)
