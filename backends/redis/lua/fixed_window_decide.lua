-- The twin of decided() in src/rules/fixed_window.cpp, in its place in a rule behind fixed_window_standing.lua:
-- ends it if it refuses.
  local want = used + cost
  if closed or want > limit then
    local fits_at = begin
    if want > limit then fits_at = to end
    return 0, left, fits_at - now, clear
  end

