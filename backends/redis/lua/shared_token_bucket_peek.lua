-- The twin of the kernel of shared_token_bucket.peek in src/rules/shared_token_bucket.cpp: same names, same
-- order, with moment() in its place. Writes nothing.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function shared_token_bucket_peek(head, _, now, reported, cost, keep_alive)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > 4503599627370496 then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if reported < 0 or reported > 4503599627370496 or keep_alive < 1 or
    keep_alive > 2251799813685248 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_token_bucket_view
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity

  local limit, charge = capacity * period, cost * period
  if stamp > now + 60000000 and level > limit - charge then level = limit - charge end
  local output = struct.pack('<i8i8i8i8', version, capacity, refill, period)
  local want = level + charge
  if want > limit or (at > now and level > limit - period) then -- shared_wait()
    local free, over = limit - level, want - limit
    if free < 0 then free = 0 end
    if over < 0 then over = 0 end
    return 0, (free - free % period) / period, at - now + (over + -over % refill) / refill,
      at - now + (level + -level % refill) / refill, output
  end
  local free = limit - level
  return 1, (free - free % period) / period, 0, at - now + (level + -level % refill) / refill,
    output
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 6, '<i8i8i8', 7, 4, shared_token_bucket_peek

