-- The twin of TokenBucketRule::peek in src/rules/token_bucket.cpp: same names, same order,
-- with moment() in its place. Returns status, remaining, retry_after and reset_after.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_peek(spent, stamp, now, capacity, refill, period, full_after, cost)
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
  local free, over = limit - level, want - limit
  if free < 0 or closed then free = 0 end
  local remaining, reset_after =
    (free - free % period) / period, at - now + (level + -level % refill) / refill
  if over > 0 or closed then
    if over < 0 then over = 0 end
    return 0, remaining, at - now + (over + -over % refill) / refill, reset_after
  end
  return 1, remaining, 0, reset_after
end

local KIND, ARGUMENTS, decide = 18, '<i8i8i8i8i8', token_bucket_peek

