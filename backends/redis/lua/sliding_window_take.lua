-- The twin of SlidingWindowRule::take, behind sliding_window_decide.lua.
local function sliding_window_take(head, table, now, limit, cost, max_wait, longest)
  return sliding_window_decide(head, table, now, limit, cost, max_wait, longest, true)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 21, '<i8i8i8i8', 11, -1, sliding_window_take
