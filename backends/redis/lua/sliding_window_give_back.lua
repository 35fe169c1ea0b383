-- The twin of SlidingWindowRule::give_back, behind sliding_window_give.lua.
local function sliding_window_give_back(head, table, now, limit, units, time, keep)
  if units < 0 or units > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if time < 0 or time > 4503599627370496 or keep < 0 or keep > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  return sliding_window_give(head, table, now, units, time)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 21, '<i8i8i8i8', 11, -1, sliding_window_give_back
