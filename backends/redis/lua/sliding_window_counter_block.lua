-- The twin of SlidingWindowCounterRule::block in src/rules/sliding_window_counter.cpp: same names, same order,
-- with look() and clear_after() in their place.
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
    put(0, struct.pack('<i8i8', head[1], old_span + 8796093022208)) -- blocked
    put(5, struct.pack('<i8', till))
  end
  local left, clear = limit - spent, 0
  if left < 0 or closed > now then left = 0 end
  if current > 0 then
    clear = start + 2 * width - now
  elseif previous > 0 then
    clear = start + width - now
  end
  if fits_at then clear = spent > 0 and fits_at(clear + now, 0) - now or 0 end
  if closed - now > clear then clear = closed - now end
  return 1, left, 0, clear
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 19, '<i8i8i8', 4, 0, sliding_window_counter_block
