-- The twin of decide() in src/rules/sliding_window_counter.cpp, with fits_at(), in its place in a rule behind
-- sliding_window_counter_standing.lua: ends it if it refuses.
  local room, fits = limit - cost, now
  if closed > now or estimate > room then
    if estimate > room then
      fits = start + span
      if room < current then
        fits = fits + span - scale(room, span, current)
      else
        fits = fits - scale(room - current, span, previous)
      end
    end
    if closed > fits then fits = closed end
    return 0, left, fits - now, clear
  end
