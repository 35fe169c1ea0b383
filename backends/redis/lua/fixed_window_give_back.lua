-- The twin of give_back() in src/rules/fixed_window.cpp: same names, same order, with is_stored()
-- and ends_in() in their places. Returns status, remaining, retry_after, reset_after, and if the state changes the
-- stored window's end and what is used of it, and packed: the units given back.
local function fixed_window_give_back(last, packed, now, limit, from, to, cost)
  if cost < 0 or cost > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if limit < 0 or limit > 4398046511104 or from < 0 or from > to or to > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

  local code = packed % 512
  if code > 417 then return -17, 0, 0, 0 end -- blocked; Errc::corrupt_state
  local used, unit, wide = (packed - code) / 512, 2 ^ ((code - code % 8) / 8), 8 * (to - from)
  local top = (8 + code % 8) * unit
  local reach = now + 60000000 -- max_ahead, us
  local closed, same = 0, last == to and wide <= top and wide > top - unit
  if code == 417 then
    same = from < last and last < to
    if last > now then closed = last - now end
  end
  if not (same and now < to and from <= reach and used > 0) then return 0, 0, 0, 0 end
  local given = cost
  if given > used then given = used end
  used = used - given
  local remaining, reset_after = limit - used, closed
  if remaining < 0 or closed > 0 then remaining = 0 end
  if used > 0 then reset_after = to - now end
  if given == 0 then return 1, remaining, 0, reset_after end
  return 1, remaining, 0, reset_after, last, used * 512 + code, struct.pack('<i8', given)
end

local KIND, ARGUMENTS, DETAILS, decide = 16, '<i8i8i8i8', 1, fixed_window_give_back

