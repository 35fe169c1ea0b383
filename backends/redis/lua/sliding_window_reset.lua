-- The twin of SlidingWindowRule::reset: same names, same order.
local function sliding_window_reset(head, table, now, limit)
  local least, output = 4503599627370496, struct.pack('<i8', 0)
  for i = 1, #table, 2 do
    local window, span = table[i], table[i + 1] or 0
    if window < 1 or window > 65536 or span < 1 or span > 31622400000000 then
      return -38, 0, 0, 0 -- Errc::invalid_argument
    end
    if window < least then least = window end
    output = output .. struct.pack('<i8', window)
  end
  if #table == 0 or #table > 16 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  put(0, string.rep('\0', 64))
  return 1, least, 0, 0, output
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 21, '<i8', 11, -1, sliding_window_reset
