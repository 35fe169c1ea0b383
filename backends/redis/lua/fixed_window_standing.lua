-- The twin of standing() in src/rules/fixed_window.cpp, in its place in a rule: what remains, and when the
-- window is as good as new.
  local left, clear = limit - used, 0
  if left < 0 or closed then left = 0 end
  if used > 0 then clear = to - now elseif closed then clear = begin - now end

