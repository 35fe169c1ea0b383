-- The twin of peek() in src/rules/fixed_window.cpp: same names, same order, with decided(),
-- moment(), is_stored() and window_at() in its place. Returns status, remaining, retry_after and
-- reset_after.
local function fixed_window_peek(last, packed, now, limit, width, b0, b1, b2, b3, b4, cost)
  local code = packed % 512 -- of the width
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if limit > 4398046511104 or width < 0 or width > 2251799813685248 or b0 < 0 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

-- SHARED fixed_window_present
  local used, fits_at, unused_at = 0, to, to
  if last > from then
    used = (packed - code) / 512
    local unit, wide, stored_to = 2 ^ ((code - code % 8) / 8), 8 * (to - from), to
    local top = (8 + code % 8) * unit
    if to > 4503599627370496 then stored_to = 4503599627370496 end -- word_limit
    if last ~= stored_to or wide > top or wide <= top - unit then
-- SHARED fixed_window_foreign
      from, to, used, fits_at, unused_at =
        fixed_window_foreign(last, used, code, now, limit, width, b0, b1, b2, b3, b4, cost, from, to)
    end
  end

  local want, unused_after = used + cost, 0
  if used > limit then used = limit end
  if used > 0 then unused_after = unused_at - now end
  if want > limit then return 0, limit - used, fits_at - now, unused_after end
  return 1, limit - used, 0, unused_after
end

local KIND, ARGUMENTS, DETAILS, decide = 16, '<i8i8i8i8i8i8i8i8', 0, fixed_window_peek

