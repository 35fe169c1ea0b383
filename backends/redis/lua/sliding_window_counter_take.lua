-- The twin of SlidingWindowCounterRule::take in src/rules/sliding_window_counter.cpp: same names, same order.
-- Returns status, remaining, retry_after and reset_after.
local function sliding_window_counter_take(head, table, now, limit, span, cost)
  if limit < 1 or limit > 1099511627776 or span < 1 or span > 4398046511104 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
-- SHARED sliding_window_counter_view
-- SHARED sliding_window_counter_standing
-- SHARED sliding_window_counter_decide
  if cost == 0 then return 1, left, 0, clear end
  local counts = struct.pack('<i8i8i8', start, current + cost, previous)
  if closed > 0 then counts = counts .. struct.pack('<i8', 0) end
  put(0, counts)
  return 1, left - cost, 0, start + 2 * span - now
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 23, '<i8i8i8', 4, 0, sliding_window_counter_take
