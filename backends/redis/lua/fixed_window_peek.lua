-- The twin of peek() in src/algorithms/fixed_window.cpp: same names, same order, with decided(),
-- moment() and window_at() in its place. Returns status, remaining, retry_after and reset_after.
local function fixed_window_peek(start, used, now, limit, width, b0, b1, b2, b3, b4, cost)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if limit > 4503599627370496 or width < 0 or width > 2251799813685248 or b0 < 0 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

  local set_back = start > now + 60000000 -- max_ahead, us
  local at = now
  if start > at and not set_back then at = start end
  local from, to
  if width > 0 then
    if b0 >= width then return -38, 0, 0, 0 end
    if at < b0 then
      from, to = 0, b0
    else
      from = at - (at - b0) % width
      to = from + width
    end
  else
    if b1 < b0 or b2 < b1 or b3 < b2 or b4 < b3 or b4 > 4503599627370496 then return -38, 0, 0, 0 end
    if at < b0 or at >= b4 then return -41, 0, 0, 0 end -- Errc::outside_calendar
    if at >= b3 then from, to = b3, b4
    elseif at >= b2 then from, to = b2, b3
    elseif at >= b1 then from, to = b1, b2
    else from, to = b0, b1
    end
  end
  if start < from then used = 0 end
  if used > limit then used = limit end
  if set_back and used > limit - cost then used = limit - cost end

  local want, retry_after, reset_after = used + cost, to - now, 0
  if used > 0 then reset_after = retry_after end
  if want > limit then return 0, limit - used, retry_after, reset_after end
  return 1, limit - used, 0, reset_after
end

local KIND, ARGUMENTS, DETAILS, decide = 4, '<i8i8i8i8i8i8i8i8', 0, fixed_window_peek

