-- The twins of are_windows(), stored_of() and holds() in src/rules/fixed_window.cpp, in their place in a rule:
-- ends it if the calendar or the state cannot be, or if no window of the calendar holds `now`.
  if limit > 4398046511104 or width < 0 or width > 2251799813685248 or b0 < 0 or
    (width > 0 and b0 >= width) or
    (width == 0 and (b1 < b0 or b2 < b1 or b3 < b2 or b4 < b3 or b4 > 4503599627370496)) then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if packed > 17592186044415 then return -17, 0, 0, 0 end -- Errc::corrupt_state: above max_used
  if width == 0 and (now < b0 or now >= b4) then return -41, 0, 0, 0 end -- Errc::outside_calendar

