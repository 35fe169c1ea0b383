-- The twin of src/algorithms/token_bucket.cpp: same names, same order. Both rules return
-- status, remaining, retry_after, reset_after and, if the state changes, the new level and stamp.

local MAX_AHEAD = 60000000 -- us

local function token_bucket_check(capacity, cost)
  if cost < 0 then return INVALID_COST end
  if cost > capacity then return COST_EXCEEDS_CAPACITY end
  return 1
end

-- Returns the instant that the rule sees, and what is spent at it.
local function token_bucket_moment(level, stamp, now, limit, charge, refill, full_after)
  if level > limit then level = limit end
  if stamp > now + MAX_AHEAD then
    if level > limit - charge then level = limit - charge end
    return now, level
  end
  local at = now
  if stamp > at then at = stamp end
  local elapsed = at - stamp
  if elapsed >= full_after then return at, 0 end
  level = level - elapsed * refill
  if level < 0 then level = 0 end
  return at, level
end

local function token_bucket_take(level, stamp, now, capacity, refill, period, full_after, cost)
  local status = token_bucket_check(capacity, cost)
  if status < 0 then return status, 0, 0, 0 end
  local limit, charge = capacity * period, cost * period
  local at
  at, level = token_bucket_moment(level, stamp, now, limit, charge, refill, full_after)
  local want = level + charge
  if want > limit then
    return 0, math.floor((limit - level) / period), at - now + math.ceil((want - limit) / refill),
      at - now + math.ceil(level / refill)
  end
  local remaining, reset_after =
    math.floor((limit - want) / period), at - now + math.ceil(want / refill)
  if cost > 0 then return 1, remaining, 0, reset_after, want, at end
  return 1, remaining, 0, reset_after
end

local function token_bucket_peek(level, stamp, now, capacity, refill, period, full_after, cost)
  local status = token_bucket_check(capacity, cost)
  if status < 0 then return status, 0, 0, 0 end
  local limit, charge = capacity * period, cost * period
  local at
  at, level = token_bucket_moment(level, stamp, now, limit, charge, refill, full_after)
  local want = level + charge
  local remaining, reset_after =
    math.floor((limit - level) / period), at - now + math.ceil(level / refill)
  if want > limit then
    return 0, remaining, at - now + math.ceil((want - limit) / refill), reset_after
  end
  return 1, remaining, 0, reset_after
end
