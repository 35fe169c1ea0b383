-- The twin of the kernel of shared_token_bucket.adjust in src/rules/shared_token_bucket_reserve.cpp: same names,
-- same order, with shared_moment(), charged(), blocked() and left_so() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function shared_token_bucket_adjust(head, _, now, reported, change, keep_alive, amount)
  if reported < 0 or reported > 4503599627370496 or change < 0 or change > 3 or keep_alive < 1 or
    keep_alive > 2251799813685248 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if amount < 0 or amount > 4503599627370496 or (change == 3 and amount > 60000000) then -- longest, us
    if change == 3 then return -38, 0, 0, 0 end
    return -2, 0, 0, 0 -- Errc::invalid_cost
  end
-- SHARED shared_token_bucket_view
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  local given_up = stamp > now + 60000000 -- max_ahead, us

  local limit = capacity * period
  local units = amount * period
  if amount > (4503599627370496 - 4503599627370496 % period) / period then
    units = 4503599627370496
  end
  if given_up and level > limit then level = limit end
-- SHARED shared_token_bucket_give
  local function truly(elapsed)
    if spent == 4503599627370496 then return spent end
    local left = spent - elapsed * refill
    if left < 0 then left = 0 end
    return left
  end

  if change == 0 then -- reset
    new_level, new_stamp, new_spent = 0, now, 0
  elseif change == 1 then -- reward
    give(now, units)
  elseif change == 2 then -- charge
    local last = now + 60000000
    local _, before = place(level, at)
    local want = level + units
    if want > 4503599627370496 then want = 4503599627370496 end
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
    if new_spent > 4503599627370496 then new_spent = 4503599627370496 end -- word_limit
    local least = truly(elapsed) + units
    if least > limit then least = limit end
    if least > new_spent then new_spent = least end
  else -- block
    local last = now
    if amount > 0 then last = now + amount - 1 end
    if last > 4503599627370496 then last = 4503599627370496 end -- word_limit
    if last > at then new_stamp = last end
    local least = limit - period + 1
    if last >= at then
      if amount == 0 then
        least = limit - period
      else
        least = limit - period + refill
        if least > limit then least = limit end
      end
    end
    new_level = level - (new_stamp - at) * refill
    if new_level < 0 then new_level = 0 end
    if new_level < least then
      new_level = least
    elseif new_level == limit then
      new_level, new_stamp = place(limit + 1, new_stamp)
    elseif new_level < 4503599627370496 then -- word_limit
      new_level = new_level + 1
    end
    new_spent = truly(new_stamp - at)
  end
  put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, new_level, new_spent,
    new_stamp))
  local free = limit - new_level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, 0,
    new_stamp - now + (new_level + -new_level % refill) / refill,
    struct.pack('<i8i8', version, capacity)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 6, '<i8i8i8i8', 7, 2, shared_token_bucket_adjust
