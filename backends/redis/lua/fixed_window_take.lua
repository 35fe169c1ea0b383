-- The twin of take() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and, if the state changes, its two words.
local function fixed_window_take(begin, packed, now, limit, width, b0, b1, b2, b3, b4, cost)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
-- SHARED fixed_window_check
-- SHARED fixed_window_view
-- SHARED fixed_window_standing
-- SHARED fixed_window_decide
  if cost == 0 then return 1, left, 0, clear end
  return 1, limit - want, 0, to - now, begin, 2 * want
end

local KIND, ARGUMENTS, DETAILS, decide = 22, '<i8i8i8i8i8i8i8i8', 0, fixed_window_take

