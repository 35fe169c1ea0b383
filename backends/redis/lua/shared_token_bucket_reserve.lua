-- The twin of the kernel of shared_token_bucket.reserve in src/rules/shared_token_bucket_reserve.cpp: same names,
-- same order, with shared_moment(), place(), truly() and left_so() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function shared_token_bucket_reserve(head, _, now, reported, cost, keep_alive, max_wait)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > 4503599627370496 then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if reported < 0 or reported > 4503599627370496 or keep_alive < 1 or
    keep_alive > 2251799813685248 or max_wait < 0 or max_wait > 60000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_token_bucket_view
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  local given_up = stamp > now + 60000000 -- max_ahead, us
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  local limit, charge = capacity * period, cost * period
  if given_up and level > limit - charge then level = limit - charge end

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
      at - now + (level + -level % refill) / refill,
      struct.pack('<i8i8i8i8i8i8', 0, 0, 0, 0, 0, capacity)
  end
  local new_level, new_stamp, before = want, at, spent
  if over > 0 then
    new_stamp = at + (over + -over % refill) / refill
    if new_stamp > 4503599627370496 then new_stamp = 4503599627370496 end -- word_limit
    new_level = want - (new_stamp - at) * refill
    if new_level < limit - period + 1 then new_level = limit - period + 1 end
    if new_level > limit then new_level = limit end
  end
  if spent < 4503599627370496 then
    spent = spent - (new_stamp - at) * refill
    if spent < 0 then spent = 0 end
  end
  spent = spent + charge
  if spent > 4503599627370496 then spent = 4503599627370496 end
  if cost > 0 then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level, spent,
      new_stamp))
  end
  local free = limit - new_level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, wait,
    new_stamp - now + (new_level + -new_level % refill) / refill,
    struct.pack('<i8i8i8i8i8i8', cost, level, at, version, before, capacity)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 6, '<i8i8i8i8', 7, 6, shared_token_bucket_reserve
