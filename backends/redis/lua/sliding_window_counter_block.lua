-- The twin of SlidingWindowCounterRule::block in src/rules/sliding_window_counter.cpp: same names, same order.
local function sliding_window_counter_block(head, table, now, limit, span, length)
  if limit < 1 or limit > 1099511627776 or span < 1 or span > 4398046511104 or length < 0 or
    length > 31536000000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local cost = 0
-- SHARED sliding_window_counter_view
  local till = now + length
  if till > 4503599627370496 then till = 4503599627370496 end -- word_limit
  if length > 0 and till > closed then
    closed = till
    put(0, struct.pack('<i8', head[1]))
    put(3, struct.pack('<i8', till))
  end
-- SHARED sliding_window_counter_standing
  return 1, left, 0, clear
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 23, '<i8i8i8', 4, 0, sliding_window_counter_block
