-- The twin of SlidingWindowCounterRule::reset: same names, same order.
local function sliding_window_counter_reset(head, table, now, limit)
  if limit < 1 or limit > 1099511627776 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  put(0, string.rep('\0', 32))
  return 1, limit, 0, 0
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 23, '<i8', 4, 0, sliding_window_counter_reset
