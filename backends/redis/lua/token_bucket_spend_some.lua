-- The twin of the kernel of token_bucket.spend_some in src/algorithms/token_bucket_spend.cpp: same names, same
-- order, with place() in its place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_spend_some(first, second, now, capacity, refill, period, interval, full_at,
  span, min_cost, cost)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if min_cost < 0 then return -2, 0, 0, 0 end
  if min_cost > cost then return -38, 0, 0, 0 end -- Errc::invalid_argument
  local charge = cost * period
-- SHARED token_bucket_moment

  local free, reset_after = limit - level, 0
  if free < 0 or closed then free = 0 end
  local remaining = (free - free % period) / period
  local granted, most = -1, limit - level
  if most >= 0 and not closed then granted = (most - most % period) / period end
  if granted > cost then granted = cost end
  if granted < min_cost then
    local over = level + min_cost * period - limit
    if over < 0 then over = 0 end
    local covered = at + (over + -over % refill) / refill
    if level > 0 or at > now then
      reset_after = at + (level + -level % refill) / refill
      reset_after = reset_after - now + (interval - reset_after % interval) % interval
    end
    return 0, remaining, covered - now + (interval - covered % interval) % interval, reset_after,
      nil, nil, struct.pack('<i8i8i8', 0, 0, 0)
  end

  local want = level + granted * period
  local wait, new_level, new_stamp = 0, want, at
  if closed then wait = at - now end
  if want > limit then
    local over = want - limit
    new_stamp = at + (over + -over % refill) / refill
    new_stamp = new_stamp + -new_stamp % interval
    wait = new_stamp - now
    if new_stamp > 4503599627370496 then new_stamp = 4503599627370496 end -- word_limit
    local least = 0
    if interval == 1 then least = limit - period + 1 end
    new_level = want - (new_stamp - at) * refill
    if new_level < least then new_level = least end
    if new_level > limit then new_level = limit end
  end
  if want > 0 or at > now then
    reset_after = at + (want + -want % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end
  free = limit - want
  if free < 0 or closed then free = 0 end
  remaining = (free - free % period) / period
  local spent = new_level * scale + unit
  -- Granted at once: it neither promises nor lies behind a promise.
  local details = struct.pack('<i8i8i8', granted, spent, new_stamp)
  if granted > 0 then
    return 1, remaining, wait, reset_after, spent, new_stamp, details
  end
  return 1, remaining, wait, reset_after, nil, nil, details
end

local KIND, ARGUMENTS, DETAILS, decide = 18, '<i8i8i8i8i8i8i8i8', 3, token_bucket_spend_some

