-- The twin of give_back() in src/algorithms/fixed_window.cpp: same names, same order. Returns status,
-- remaining, retry_after, reset_after and, if the state changes, the new start and used.
local function fixed_window_give_back(start, used, now, limit, from, to, cost)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if limit > 4503599627370496 or from < 0 or from > to or to > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

  local same = start >= from and start < to and now < to and start <= now + 60000000 and used > 0
  if not same then return 0, 0, 0, 0 end
  used = used - cost
  if used < 0 then used = 0 end
  local remaining, reset_after = limit - used, 0
  if remaining < 0 then remaining = 0 end
  if used > 0 then reset_after = to - now end
  if cost > 0 then return 1, remaining, 0, reset_after, start, used end
  return 1, remaining, 0, reset_after
end

local KIND, ARGUMENTS, DETAILS, decide = 4, '<i8i8i8i8', 0, fixed_window_give_back

