-- The twin of the kernel of token_bucket.give_back in src/rules/token_bucket_give_back.cpp: same
-- names, same order, with same_position() and left_so() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function token_bucket_give_back(first, second, now, capacity, refill, period, interval, cost,
  amount, spent_then, stamp_then)
  if cost < 0 or amount < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if amount > cost or interval < 1 or interval > 35184372088832 or spent_then < 0 or
    spent_then > 4503599627370496 or stamp_then < 0 or stamp_then > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local limit = capacity * period
  if limit >= 2251799813685248 or interval * refill > 4503599627370496 - limit then
    return -38, 0, 0, 0
  end
  local at = now - now % interval
  local level, stamp = (first - first % 2) / 2, second
  local level_then = (spent_then - spent_then % 2) / 2
  cost, amount = cost * period, amount * period
  local function after(units)
    local level, stamp = level_then + units, stamp_then
    if units == 0 or level <= limit then return level, stamp end
    local over = level - limit
    stamp = stamp + (over + -over % refill) / refill
    stamp = stamp + -stamp % interval
    if stamp > 4503599627370496 then stamp = 4503599627370496 end -- word_limit
    local least = 0
    if interval == 1 then least = limit - period + 1 end
    level = level - (stamp - stamp_then) * refill
    if level < least then level = least end
    if level > limit then level = limit end
    return level, stamp
  end
  local grant_level, grant_stamp = after(cost)
  local rest_level, rest_stamp = after(cost - amount)
  local on_top
  if stamp < grant_stamp then
    on_top = level - (grant_stamp - stamp) * refill == grant_level
  else
    on_top = grant_level - (stamp - grant_stamp) * refill == level
  end
  -- A stamp ahead that is not closed is the clock's, which was set back: time stands still at it.
  local closed = first % 2 == 1
  local waits = stamp > at and closed
  local seen = at
  if stamp > at then seen = stamp end
  local left = level - (seen - stamp) * refill
  if left < 0 then left = 0 end

  local new_level, new_stamp, closes, given = level, stamp, waits, 0
  if on_top then
    local undrained = left
    if waits then undrained = left + (stamp - at) * refill end
    given = amount
    if given > undrained then given = undrained end
    if given > 0 then new_level, new_stamp = rest_level, rest_stamp end
    closes = spent_then % 2 == 1 or rest_stamp > stamp_then
  elseif not waits and level <= limit then
    local age = seen - grant_stamp
    if age < 0 then age = 0 end
    if interval > 1 then age = age + interval end
    given = cost - age * refill
    if given < 0 then given = 0 end
    if given > amount then given = amount end
    if given > left then given = left end
    new_level = level - given
  end
  local spent
  if given > 0 then
    spent = 2 * new_level
    if closes then spent = spent + 1 end
  else
    closes = closed
  end

  local rest = new_level -- left_so()
  if new_stamp <= at then
    rest = rest - (at - new_stamp) * refill
    if rest < 0 then rest = 0 end
  end
  local free, reset_after = limit - rest, 0
  if free < 0 or new_stamp > at and closes then free = 0 end
  if new_stamp > at then at = new_stamp end
  if rest > 0 or at > now then
    reset_after = at + (rest + -rest % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end
  local newest = 0
  if on_top and (waits or left > 0) then newest = 1 end -- else the state may be gone
  local output = struct.pack('<i8i8i8', (given - given % period) / period, newest, rest_stamp)
  return 1, (free - free % period) / period, 0, reset_after, spent, spent and new_stamp, output
end

local KIND, ARGUMENTS, DETAILS, decide = 18, '<i8i8i8i8i8i8i8i8', 3, token_bucket_give_back

