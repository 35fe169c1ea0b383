-- The twin of the kernel of token_bucket.give_back in src/algorithms/token_bucket_give_back.cpp: same
-- names, same order, with same_position(), level_of() and place() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_give_back(first, second, now, capacity, refill, period, interval, cost,
  amount, spent_then, stamp_then)
  if cost < 0 or amount < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if amount > cost or interval < 1 or interval > 35184372088832 or spent_then < 0 or
    spent_then > 4503599627370496 or stamp_then < 0 or stamp_then > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local limit, unit = capacity * period, 0
  if spent_then % 2 == 1 then unit = spent_then % 4096 end
  if (unit == 0 and limit > 2251799813685248) or (unit ~= 0 and limit >= 549755813888) then
    return -38, 0, 0, 0
  end
  local at = now - now % interval
  local level, stamp = first, second
-- SHARED token_bucket_level
  local level_then = (spent_then - spent_then % scale) / scale

  local ahead, left, lost = 0, 0, false
  if stamp > at then
    ahead = stamp - at
    lost = ahead * refill > 4503599627370496 - limit
    left = level + ahead * refill
    if lost then left = limit end
  else
    left = level - (at - stamp) * refill
    if left < 0 then left = 0 end
  end
  local stays = ahead > 0 and unit > 0 and spent_then % 8192 >= 4096 -- see is_behind()
  local same_unit, on_top = word_unit == unit
  if stamp < stamp_then then
    on_top = level - (stamp_then - stamp) * refill == level_then
  else
    on_top = level_then - (stamp - stamp_then) * refill == level
  end
  on_top = on_top and same_unit
  local given, most = 0, amount * period
  if on_top and not lost then
    given = most
  elseif ahead == 0 and same_unit and level <= limit then
    local age = at - stamp_then
    if age < 0 then age = 0 end
    if interval > 1 then age = age + interval end
    given = cost * period - age * refill
    if given < 0 then given = 0 end
    if given > most then given = most end
  end
  if given > left then given = left end
  if stays and given > level then given = level end

  local new_level, new_stamp, reset_after = level - given, stamp, 0
  local grant_level, grant_stamp = level_then - given, stamp_then
  if grant_level < 0 then grant_level = 0 end
  local rest = left - given
  if ahead > 0 and given > 0 and not stays then
    new_level, new_stamp = rest, at
    if rest > limit then
      local over = rest - limit
      new_stamp = at + (over + -over % refill) / refill
      new_stamp = new_stamp + -new_stamp % interval
      if new_stamp > 4503599627370496 then new_stamp = 4503599627370496 end -- word_limit
      local least = 0
      if interval == 1 then least = limit - period + 1 end
      new_level = rest - (new_stamp - at) * refill
      if new_level < least then new_level = least end
      if new_level > limit then new_level = limit end
    end
    grant_level, grant_stamp = new_level, new_stamp
  end
  if rest > 0 then
    reset_after = at + (rest + -rest % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end
  local free = limit - rest
  if free < 0 then free = 0 end
  local details = struct.pack('<i8i8i8i8', (given - given % period) / period,
    on_top and left > 0 and 1 or 0, grant_level * scale + spent_then % scale, grant_stamp)
  if given > 0 then
    local spent = new_level * scale + unit
    if promised and new_stamp > at then spent = spent + promise end
    return 1, (free - free % period) / period, 0, reset_after, spent, new_stamp, details
  end
  return 1, (free - free % period) / period, 0, reset_after, nil, nil, details
end

local KIND, ARGUMENTS, DETAILS, decide = 18, '<i8i8i8i8i8i8i8i8', 4, token_bucket_give_back

