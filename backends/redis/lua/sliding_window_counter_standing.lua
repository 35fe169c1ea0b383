-- The twin of standing() in src/rules/sliding_window_counter.cpp, with count() and clear_after(), in its place
-- in a rule.
  local estimate = current + previous - scale(previous, at - start, span)
  local left, clear = limit - estimate, 0
  if left < 0 or closed > now then left = 0 end
  if current > 0 then
    clear = start + 2 * span - now
  elseif previous > 0 then
    clear = start + span - now
  end
  if closed - now > clear then clear = closed - now end
