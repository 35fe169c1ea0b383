-- The twin of SlidingWindowRule::reward, behind sliding_window_give.lua.
local function sliding_window_reward(head, table, now, limit, units, longest)
  if units < 0 or units > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if longest < 1 or longest > 31622400000000 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  return sliding_window_give(head, table, now, units, -1)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 21, '<i8i8i8', 11, -1, sliding_window_reward
