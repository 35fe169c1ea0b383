-- The twin of SlidingWindowRule::block, behind sliding_window_decide.lua.
local function sliding_window_block(head, table, now, limit, span, longest)
  if span < 0 or span > 31622400000000 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  return sliding_window_decide(head, table, now, limit, 0, 0, longest, false, span)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 21, '<i8i8i8', 11, -1, sliding_window_block
