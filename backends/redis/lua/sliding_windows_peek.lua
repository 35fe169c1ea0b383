-- The twin of SlidingWindowsRule::peek, behind sliding_windows_decide.lua.
local function sliding_windows_peek(head, table, now, limit, cost, max_wait, longest)
  return sliding_windows_decide(head, table, now, limit, cost, max_wait, longest, false)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 17, '<i8i8i8i8', 14, -1, sliding_windows_peek
