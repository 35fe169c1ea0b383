-- The twin of the kernel of shared_bucket.give_back in src/algorithms/shared_bucket_spend.cpp: same names,
-- same order, with shared_moment(), same_position() and left_so() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function shared_bucket_give_back(head, _, now, reported, cost, keep_alive, amount, level_then,
  stamp_then, version_then, before)
  if amount < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > 4503599627370496 then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if reported < 0 or reported > 4503599627370496 or keep_alive < 1 or
    keep_alive > 2251799813685248 or amount > cost or level_then < 0 or
    level_then > 4503599627370496 or stamp_then < 0 or stamp_then > 4503599627370496 or
    version_then < 0 or version_then > 4503599627370496 or before < 0 or
    before > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_bucket_moment
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  local given_up = stamp > now + 60000000 -- max_ahead, us

  local limit = capacity * period
-- SHARED shared_bucket_give

  local known = version_then == version and not given_up and cost <= capacity and
    level_then <= limit
  local on_top = false
  if known and stamp >= stamp_then then
    on_top = level_then - (stamp - stamp_then) * refill == head[5]
  elseif known then
    on_top = head[5] - (stamp_then - stamp) * refill == level_then
  end
  local given = 0
  if on_top then
    if before < now then before = now end
    if before > at then before = at end
    given = give(before, amount * period)
  elseif known and at == now then
    local age = now - stamp_then
    if age < 0 then age = 0 end
    local own = cost * period - age * refill
    if own < 0 then own = 0 end
    if own > amount * period then own = amount * period end
    given = give(at, own)
  end
  local told_level, told_stamp = level_then - given, stamp_then
  if told_level < 0 then told_level = 0 end
  if given > 0 then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level, new_spent,
      new_stamp))
    if at > now then told_level, told_stamp = new_level, new_stamp end
  end
  local free = limit - new_level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, 0,
    new_stamp - now + (new_level + -new_level % refill) / refill,
    struct.pack('<i8i8i8i8', (given - given % period) / period,
      on_top and (given > 0 or level > 0) and 1 or 0, told_level, told_stamp)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 6, '<i8i8i8i8i8i8i8i8', 7, 4, shared_bucket_give_back
