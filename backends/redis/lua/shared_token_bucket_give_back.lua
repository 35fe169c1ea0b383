-- The twin of the kernel of shared_token_bucket.give_back in src/rules/shared_token_bucket_reserve.cpp: same names,
-- same order, with shared_moment(), same_position(), returned() and left_so() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function shared_token_bucket_give_back(head, _, now, reported, cost, keep_alive, amount, level_then,
  stamp_then, version_then, spent_then)
  if amount < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > 4503599627370496 then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if reported < 0 or reported > 4503599627370496 or keep_alive < 1 or
    keep_alive > 2251799813685248 or amount > cost or level_then < 0 or
    level_then > 4503599627370496 or stamp_then < 0 or stamp_then > 4503599627370496 or
    version_then < 0 or version_then > 4503599627370496 or spent_then < 0 or
    spent_then > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_token_bucket_view
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  local given_up = stamp > now + 60000000 -- max_ahead, us

  local limit = capacity * period
-- SHARED shared_token_bucket_give

  local known = version_then == version and not given_up and cost <= capacity
  local own, back = 0, 0
  if known then own, back = cost * period, amount * period end
  local grant_level, grant_stamp = place(level_then + own, stamp_then)
  local rest_level, rest_stamp = level_then, stamp_then
  if own > back then rest_level, rest_stamp = place(level_then + own - back, stamp_then) end
  local on_top = false
  if known and stamp >= grant_stamp then
    on_top = grant_level - (stamp - grant_stamp) * refill == head[5]
  elseif known then
    on_top = head[5] - (grant_stamp - stamp) * refill == grant_level
  end
  local waits = at > now and level > limit - period -- is_closed()
  local given = 0
  if on_top then
    given = back
    if not waits and given > level then given = level end
    if given > 0 then -- returned()
      new_level, new_stamp, new_spent = rest_level, rest_stamp, spent_then
      if new_stamp < now then new_stamp = now end
      new_level = new_level - (new_stamp - rest_stamp) * refill
      if new_level < 0 then new_level = 0 end
      if new_spent < 4503599627370496 then
        new_spent = new_spent - (rest_stamp - stamp_then) * refill
        if new_spent < 0 then new_spent = 0 end
      end
      new_spent = new_spent + own - back
      if new_spent >= 4503599627370496 then
        new_spent = 4503599627370496
      else
        new_spent = new_spent - (new_stamp - rest_stamp) * refill
        if new_spent < 0 then new_spent = 0 end
      end
    end
  elseif known and not waits then
    local age = at - grant_stamp
    if age < 0 then age = 0 end
    own = own - age * refill
    if own < 0 then own = 0 end
    if own > back then own = back end
    given = give(at, own)
  end
  if given > 0 then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level, new_spent,
      new_stamp))
  end
  local free = limit - new_level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, 0,
    new_stamp - now + (new_level + -new_level % refill) / refill,
    struct.pack('<i8i8i8', (given - given % period) / period,
      on_top and (waits or level > 0) and 1 or 0, rest_stamp)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 6, '<i8i8i8i8i8i8i8i8', 7, 3, shared_token_bucket_give_back
