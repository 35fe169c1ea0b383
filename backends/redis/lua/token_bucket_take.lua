-- The twin of TokenBucketRule::take in src/rules/token_bucket.cpp: same names, same order,
-- with moment() in its place. Returns status, remaining, retry_after, reset_after and, if the state
-- changes, the new level and stamp.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_take(spent, stamp, now, capacity, refill, period, full_after, cost)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity

  local limit, charge = capacity * period, cost * period
  local level, at, closed = (spent - spent % 2) / 2, now, false
  if stamp > now + 60000000 then -- max_ahead, us
    if level > limit - charge then level = limit - charge end
  else
    if stamp > at then at, closed = stamp, spent % 2 == 1 end
    level = level - (at - stamp) * refill
    if level < 0 then level = 0 end
  end

  local want = level + charge
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
end

local KIND, ARGUMENTS, decide = 18, '<i8i8i8i8i8', token_bucket_take

