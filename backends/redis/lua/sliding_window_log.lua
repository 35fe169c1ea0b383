-- The head of the Log of src/rules/sliding_window_log.hpp in its place in a rule.
  -- Log: what it has dropped, and the capacity that is asked for would have held, is there as
  -- assumed units.
  local stamp, newest, capacity, next, size, dropped, kept_span, layout = unpack(head, 1, 8)
  local fresh, asked = capacity == 0, #table / 2
  local places, blocks = layout % 16, (layout - layout % 16) / 16
  if fresh then
    stamp, newest, capacity, next, size, dropped, kept_span, places, blocks =
      0, 0, most, 0, 0, 0, 0, asked, 0
  elseif capacity > 65536 or next >= capacity or size > capacity or places < 1 or places > 8 or
      kept_span > 31622400000000 or dropped > 0 and size < capacity or blocks > 1 or
      blocks == 1 and (head[9] ~= 4503599627370496 or head[10] > stamp + 31622400000000) then
    corrupt()
    return -17, 0, 0, 0 -- Errc::corrupt_state
  end
  local base = 8 + 3 * places
