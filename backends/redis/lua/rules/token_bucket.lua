--@ piece token_bucket_view
-- The twin of moment() in src/rules/token_bucket_reserve.cpp in its place in a rule, with shape_of(),
-- check_shape() and first_level(): from `first`, `second` and `charge` to limit, at, level and closed.
  local limit = capacity * period
  if interval < 1 or interval > Rule.max_interval or full_at < 0 or full_at > word_limit or
    longest < 0 or longest > Rule.max_longest or limit >= word_limit / 2 or
    (longest + interval) * refill > word_limit - limit then
    return Errc.invalid_argument
  end

  local at, level, closed = now - now % interval, (first - first % 2) / 2, false
  if second > now + longest * (1 + first % 2) then
    if level > limit - charge then level = limit - charge end
  elseif second > at then
    at = second + -second % interval
    if at > word_limit then at = word_limit end
    closed = first % 2 == 1
  else
    local elapsed = at - second
    level = level - elapsed * refill
    if level < 0 then level = 0 end
    local full_after = (limit + -limit % refill) / refill
    if level == 0 and full_at > at and
      (elapsed > full_after or (first == 0 and second == 0)) then
      level = (full_at - at) * refill
      if full_at - at > full_after + longest then level = limit - charge end
    end
  end

--@ piece token_bucket_place
-- The twin of place() in src/rules/token_bucket_position.hpp in its place in a rule: from `want`, which is more than
-- the limit, at `at` to new_level and new_stamp. Without the end of time the stamp would be `covered`.
    local over = want - limit
    local covered = at + (over + -over % refill) / refill
    covered = covered + -covered % interval
    new_stamp = covered
    if new_stamp > word_limit then new_stamp = word_limit end
    local least = 0
    if interval == 1 then least = limit - period + 1 end
    new_level = want - (new_stamp - at) * refill
    if new_level < least then new_level = least end
    if new_level > limit then new_level = limit end

--@ piece token_bucket_clear
-- The twin of until_drained() in src/rules/token_bucket_position.hpp in its place in a rule: how long from `now` until
-- the level at `at` shows as drained.
  if level > 0 or at > now then
    reset_after = at + (level + -level % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end

--@ piece token_bucket_answer
-- The twin of answer() in src/rules/token_bucket_reserve.cpp in its place in a rule, with check_ask() and
-- place(): same names, same order, but that a wait is judged behind the shape, which says how long it may be.
-- From `max_wait`, `min_cost`, `cost` and `spends` to what the rule returns. For whole numbers (x - x % y) / y
-- is the floor of x / y, and (x + -x % y) / y its ceiling.
  if cost < 0 then return Errc.invalid_cost end
  if cost > capacity then return Errc.cost_exceeds_capacity end
  if min_cost < 0 then return Errc.invalid_cost end
  local charge = cost * period
--@ use token_bucket_view
  if min_cost > cost or max_wait < 0 or max_wait > longest then
    return Errc.invalid_argument
  end

  local free, reset_after = limit - level, 0
  if free < 0 or closed then free = 0 end
  local remaining = (free - free % period) / period
  local latest = now + max_wait
  local reach = latest - latest % interval - at
  local is_open = reach >= 0 or not closed
  if reach < 0 then reach = 0 end
  local granted, most = -1, limit + reach * refill - level
  if most >= 0 and is_open then granted = (most - most % period) / period end
  if granted > cost then granted = cost end
  if granted < min_cost then
    local over = level + min_cost * period - limit
    if over < 0 then over = 0 end
    local covered = at + (over + -over % refill) / refill
--@ use token_bucket_clear
    return 0, remaining, covered - now + (interval - covered % interval) % interval - max_wait,
      reset_after, nil, nil, struct.pack('<i8i8i8', 0, 0, 0)
  end

  local want = level + granted * period
  local wait, new_level, new_stamp = 0, want, at
  if closed then wait = at - now end
  if want > limit then
--@ use token_bucket_place
    wait = covered - now
  end
  local spent, before = 2 * new_level, 2 * level
  if closed or new_stamp > at then spent = spent + 1 end
  if closed then before = before + 1 end
  local output = struct.pack('<i8i8i8', granted, before, at)
  if spends then
    level, free = want, limit - want
    if free < 0 or closed then free = 0 end
    remaining = (free - free % period) / period
  end
--@ use token_bucket_clear
  if spends and granted > 0 then
    return 1, remaining, wait, reset_after, spent, new_stamp, output
  end
  return 1, remaining, wait, reset_after, nil, nil, output

--@ piece token_bucket_moment
-- The twins of check() and moment() of src/rules/token_bucket_kernel.hpp in their place: from the state and the
-- arguments to the bucket at one instant, limit, level, at and closed, and to what is asked, charge and want.
  if cost < 0 then return Errc.invalid_cost end
  if cost > capacity then return Errc.cost_exceeds_capacity end

  local limit, charge = capacity * period, cost * period
  local level, at, closed = (spent - spent % 2) / 2, now, false
  if stamp > now + Rule.max_ahead * (1 + spent % 2) then
    if level > limit - charge then level = limit - charge end
  else
    if stamp > at then at, closed = stamp, spent % 2 == 1 end
    level = level - (at - stamp) * refill
    if level < 0 then level = 0 end
  end

  local want = level + charge

--@ operation token_bucket_acquire(spent, stamp | capacity, refill, period, full_after, cost)
-- The twin of TokenBucketRule::acquire in src/rules/token_bucket_kernel.hpp: same names, same order,
-- with moment() in its place. Returns status, remaining, retry_after, reset_after and, if the state
-- changes, the new level and stamp.
--@ use token_bucket_moment
  if want > limit or closed then
    local free, over = limit - level, want - limit
    if free < 0 or closed then free = 0 end
    if over < 0 then over = 0 end
    return 0, (free - free % period) / period, at - now + (over + -over % refill) / refill,
      at - now + (level + -level % refill) / refill
  end
  local free = limit - want
  local remaining, reset_after =
    (free - free % period) / period, at - now + (want + -want % refill) / refill
  if cost > 0 then return 1, remaining, 0, reset_after, 2 * want, at end
  return 1, remaining, 0, reset_after

--@ operation token_bucket_peek(spent, stamp | capacity, refill, period, full_after, cost)
-- The twin of TokenBucketRule::peek in src/rules/token_bucket_kernel.hpp: same names, same order,
-- with moment() in its place. Returns status, remaining, retry_after and reset_after.
--@ use token_bucket_moment
  local free, over = limit - level, want - limit
  if free < 0 or closed then free = 0 end
  local remaining, reset_after =
    (free - free % period) / period, at - now + (level + -level % refill) / refill
  if over > 0 or closed then
    if over < 0 then over = 0 end
    return 0, remaining, at - now + (over + -over % refill) / refill, reset_after
  end
  return 1, remaining, 0, reset_after

--@ operation token_bucket_reserve(first, second | capacity, refill, period, interval, full_at, longest, max_wait, cost)
-- The twin of the kernel of token_bucket.reserve in src/rules/token_bucket_reserve.cpp.
  local min_cost, spends = cost, true
--@ use token_bucket_answer

--@ operation token_bucket_reserve_some(first, second | capacity, refill, period, interval, full_at, longest, min_cost, cost)
-- The twin of the kernel of token_bucket.reserve_some in src/rules/token_bucket_reserve.cpp.
  local max_wait, spends = 0, true
--@ use token_bucket_answer

--@ operation token_bucket_peek_reserve(first, second | capacity, refill, period, interval, full_at, longest, max_wait, cost)
-- The twin of the kernel of token_bucket.peek_reserve in src/rules/token_bucket_reserve.cpp. Writes nothing.
  local min_cost, spends = cost, false
--@ use token_bucket_answer

--@ piece token_bucket_return
-- The twin of decide() in src/rules/token_bucket_refund.cpp: same names, same order, with left_so() in its place.
  if cost < 0 or amount < 0 then return Errc.invalid_cost end
  if cost > capacity then return Errc.cost_exceeds_capacity end
  if amount > cost or interval < 1 or interval > Rule.max_interval or spent_then < 0 or
    spent_then > word_limit or stamp_then < 0 or stamp_then > word_limit then
    return Errc.invalid_argument
  end
  local limit = capacity * period
  if limit >= word_limit / 2 or interval * refill > word_limit - limit then
    return Errc.invalid_argument
  end
  local at = now - now % interval
  local level, stamp = (first - first % 2) / 2, second
  local level_then = (spent_then - spent_then % 2) / 2
  cost, amount = cost * period, amount * period
  local function after(units)
    local want, at, new_level, new_stamp = level_then + units, stamp_then, nil, nil
    if units == 0 or want <= limit then return want, at end
--@ use token_bucket_place
    return new_level, new_stamp
  end
  local grant_level, grant_stamp = after(cost)
  local rest_level, rest_stamp = after(cost - amount)
  -- A stamp ahead that is not closed is the clock's, which was set back: time stands still at it.
  local closed = first % 2 == 1
  local waits = stamp > at and closed
  local is_last = waits and level == grant_level and stamp == grant_stamp

  local new_level, new_stamp, closes, given = level, stamp, false, 0
  if is_last then
    given = amount
    new_level, new_stamp = rest_level, rest_stamp
    closes = spent_then % 2 == 1 or rest_stamp > stamp_then
    if amount < cost and rest_stamp < at then -- the rest is spent now, not when it could have been
      new_level, new_stamp, closes = rest_level - (at - rest_stamp) * refill, at, false
      if new_level < 0 then new_level = 0 end
    end
  elseif not waits and stamp >= grant_stamp then
    local left = level
    if at > stamp then left = level - (at - stamp) * refill end
    local held = cost
    if held > grant_level then held = grant_level end -- the rest had drained by a time rounded up
    given = held - (stamp - grant_stamp) * refill
    if in_full then given = amount end
    if given > amount then given = amount end
    if given > left then given = left end
    if given < 0 then given = 0 end
    new_level = level - given
  end
  local spent
  if given > 0 then
    spent = 2 * new_level
    if closes then spent = spent + 1 end
  else
    closes = closed
  end

  level = new_level -- left_so()
  if new_stamp <= at then
    level = level - (at - new_stamp) * refill
    if level < 0 then level = 0 end
  end
  local free, reset_after = limit - level, 0
  if free < 0 or new_stamp > at and closes then free = 0 end
  if new_stamp > at then at = new_stamp end
--@ use token_bucket_clear
  local output =
    struct.pack('<i8i8i8', (given - given % period) / period, is_last and 1 or 0, rest_stamp)
  return 1, (free - free % period) / period, 0, reset_after, spent, spent and new_stamp, output

--@ operation token_bucket_refund(first, second | capacity, refill, period, interval, cost, amount, spent_then, stamp_then)
-- The twin of the kernel of token_bucket.refund.
  local in_full = false
--@ use token_bucket_return

--@ operation token_bucket_refund_in_full(first, second | capacity, refill, period, interval, cost, amount, spent_then, stamp_then)
-- The twin of the kernel of token_bucket.refund_in_full.
  local in_full = true
--@ use token_bucket_return

--@ operation token_bucket_adjust(first, second | capacity, refill, period, interval, full_at, longest, change, amount)
-- The twin of the kernel of token_bucket.adjust in src/rules/token_bucket_reserve.cpp: same names, same
-- order, with charged(), rewarded() and blocked() in their place.
  if change < 0 or change > 3 then return Errc.invalid_argument end
  if amount < 0 or amount > word_limit then
    if change == 3 then return Errc.invalid_argument end
    return Errc.invalid_cost
  end
  local charge = 0
--@ use token_bucket_view
  if change == 3 and amount > longest - interval + 1 then return Errc.invalid_argument end

  local floor_at = now - now % interval
  local new_level, new_stamp, closes = 0, floor_at, false -- reset
  if change == 1 then -- reward
    local units, ahead = word_limit, 0
    if amount <= (word_limit - word_limit % period) / period then units = amount * period end
    if closed then ahead = at - floor_at end
    local nearer = (units - units % refill) / refill
    nearer = nearer - nearer % interval
    if nearer > ahead then nearer = ahead end
    new_level, new_stamp, closes = level - (units - nearer * refill), at - nearer, nearer < ahead
    if new_level < 0 then new_level = 0 end
  elseif change == 2 then -- charge
    local top, units = now + longest, amount * period
    top = limit + (top - top % interval - at) * refill
    local room = top
    if room < 0 then room = 0 end
    if amount > (room - room % period) / period then units = room end
    local want = level + units
    if want > top then want = top end
    if want < level then want = level end
    new_level, new_stamp, closes = want, at, closed
    if want > level and want > Rule.most_level then
--@ use token_bucket_place
      closes = true
    end
  elseif change == 3 then -- block
    new_level, new_stamp, closes = level, at, closed
    if amount > 0 then
      local till = now + amount
      till = till + -till % interval
      if till > word_limit then till = word_limit end
      if till > at then new_stamp = till end
      local least = limit - period - (new_stamp - till) * refill
      new_level = level - (new_stamp - at) * refill
      if new_level < least then new_level = least end
      if new_level < 0 then new_level = 0 end
      if new_level > Rule.most_level then new_level = Rule.most_level end
      closes = true
    end
  end
  local more = 0
  if change == 2 then
    more = new_level - level + (new_stamp - at) * refill
    more = (more - more % period) / period
    if more > amount then more = amount end
    if more < 0 then more = 0 end
  end
  local output = struct.pack('<i8', more)

  -- A debt under a larger burst must not expire with this one.
  local owed = level > limit and first ~= 0
  local same = new_level == level and new_stamp == at and closes == closed
  local spent = 2 * new_level
  if closes then spent = spent + 1 end
  local free, reset_after = limit - new_level, 0
  level, at = new_level, new_stamp
  if free < 0 or closes then free = 0 end
--@ use token_bucket_clear
  if owed and same then spent, new_stamp = nil, nil end
  return 1, (free - free % period) / period, 0, reset_after, spent, new_stamp, output
