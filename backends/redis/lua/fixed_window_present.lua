-- The twin of window_at() in src/rules/fixed_window.cpp for the present window, [from, to), in its place
-- in a rule, with the checks of the calendar and of the stored code.
  local from, to
  if width > 0 then
    if b0 >= width then return -38, 0, 0, 0 end
    if now < b0 then
      from, to = 0, b0
    else
      from = now - (now - b0) % width
      to = from + width
    end
  else
    if b1 < b0 or b2 < b1 or b3 < b2 or b4 < b3 or b4 > 4503599627370496 then return -38, 0, 0, 0 end
    if (now < b0 or now >= b4) and code <= 417 then return -41, 0, 0, 0 end -- Errc::outside_calendar
    if now >= b3 then from, to = b3, b4
    elseif now >= b2 then from, to = b2, b3
    elseif now >= b1 then from, to = b1, b2
    else from, to = b0, b1
    end
  end

  if code > 417 then return -17, 0, 0, 0 end -- blocked; Errc::corrupt_state
