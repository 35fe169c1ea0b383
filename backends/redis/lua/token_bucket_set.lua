-- The twin of the kernel of token_bucket.set in src/rules/token_bucket_reserve.cpp: same names, same
-- order, with changed(), placed() and blocked() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_set(first, second, now, capacity, refill, period, interval, full_at,
  longest, change, amount)
  if change < 0 or change > 3 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if amount < 0 or amount > 4503599627370496 then
    if change == 3 then return -38, 0, 0, 0 end
    return -2, 0, 0, 0 -- Errc::invalid_cost
  end
  local charge = 0
-- SHARED token_bucket_view
  if change == 3 and amount > longest - interval + 1 then return -38, 0, 0, 0 end
  local floor_at = now - now % interval
  if at > floor_at and change <= 1 then
    -- What is given may bring the grants ahead of it nearer.
    at, level, closed = floor_at, level + (at - floor_at) * refill, false
  end

  local kept = level > limit and first ~= 0 -- owed to a larger burst
  local owed, before, till, closes = kept, level, at, closed
  if change == 0 then -- reset
    level = 0
  elseif change == 3 then -- block
    till = now + amount
    till = till + -till % interval
    if till > 4503599627370496 then till = 4503599627370496 end -- word_limit
    if till > at then
      kept = kept and level - (till - at) * refill > limit
    elseif at > now then
      closes = true
    end
    local least = limit - period + (till - at) * refill
    if level < least and not kept then level = least end
  else
    local top, units = now + longest, amount * period
    top = limit + (top - top % interval - at) * refill
    local room = top
    if room < 0 then room = 0 end
    if amount > (room - room % period) / period then units = room end
    if change == 1 then -- reward
      level = level - units
      if level < 0 then level = 0 end
      if level > room then level = room end
    else
      local want = level + units
      if want > top then want = top end
      if level < want then level = want end
    end
  end
  if change < 3 and level ~= before then kept = false end

  local new_level, new_stamp, reset_after = level, at, 0
  if level > limit then
    local over = level - limit
    new_stamp = at + (over + -over % refill) / refill
    new_stamp = new_stamp + -new_stamp % interval
    if new_stamp > 4503599627370496 then new_stamp = 4503599627370496 end -- word_limit
    local least = 0
    if interval == 1 then least = limit - period + 1 end
    new_level = level - (new_stamp - at) * refill
    if new_level < least then new_level = least end
    if new_level > limit then new_level = limit end
    if new_stamp > at then closes = true end
  end
  if new_stamp < till then
    -- On the same line, but closed for larger bursts as well.
    new_level = new_level - (till - new_stamp) * refill
    if new_level < 0 then new_level = 0 end
    new_stamp, closes = till, true
  end
  local spent = 2 * new_level
  if closes then spent = spent + 1 end
  if kept then
    spent, new_stamp = first, second
    if change == 3 and (till > at or at > now) and first % 2 == 0 then
      local largest = 4503599627370496 -- word_limit
      spent = first + 1
      if spent > largest then spent = largest - 1 end
    end
    if till > at then new_stamp, at = till, till end
  end
  if level > 0 or at > now then
    reset_after = at + (level + -level % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end
  local free = limit - level
  if free < 0 or closed then free = 0 end
  if owed and spent == first and new_stamp == second then
    return 1, (free - free % period) / period, 0, reset_after -- not to expire with this one
  end
  return 1, (free - free % period) / period, 0, reset_after, spent, new_stamp
end

local KIND, ARGUMENTS, DETAILS, decide = 18, '<i8i8i8i8i8i8i8i8', 0, token_bucket_set

