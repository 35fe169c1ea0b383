-- The twin of the kernel of token_bucket.set in src/algorithms/token_bucket_spend.cpp: same names, same
-- order, with level_at(), first_level(), changed() and place() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_set(first, second, now, capacity, refill, period, interval, full_at,
  longest, change, amount)
  if change < 0 or change > 3 or amount < 0 or amount > 4503599627370496 or
    (change == 3 and amount > longest - interval + 1) then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if interval < 1 or interval > 35184372088832 or full_at < 0 or full_at > 4503599627370496 or
    longest < 0 or longest > 3600000000 or
    (longest + interval) * refill > 4503599627370496 - capacity * period then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

  local limit, charge = capacity * period, 0
  local at = now - now % interval
  local level = first
  if level > limit then level = limit end
  if second > now + longest then
    if level > limit - charge then level = limit - charge end
  elseif second > at then
    level = level + (second - at) * refill
  else
    local elapsed = at - second
    level = level - elapsed * refill
    if level < 0 then level = 0 end
    local full_after = (limit + -limit % refill) / refill
    if level == 0 and full_at > at and
      (elapsed >= full_after + interval or (first == 0 and second == 0)) then
      level = (full_at - at) * refill
      if full_at - at > full_after + longest then level = limit - charge end
    end
  end

  if change == 0 then -- reset
    level = 0
  elseif change == 3 then -- block
    local till = now + amount
    till = limit - period + (till + -till % interval - at) * refill
    if level < till then level = till end
  else
    local top, units = now + longest, amount * period
    top = limit + (top - top % interval - at) * refill
    if amount > (top - top % period) / period then units = top end
    if change == 1 then -- reward
      level = level - units
      if level < 0 then level = 0 end
    else
      local want = level + units
      if want > top then want = top end
      if level < want then level = want end
    end
  end

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
  end
  if level > 0 then
    reset_after = at + (level + -level % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end
  local free = limit - level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, 0, reset_after, new_level, new_stamp
end

local KIND, ARGUMENTS, DETAILS, decide = 1, '<i8i8i8i8i8i8i8i8', 0, token_bucket_set

