-- The twin of give_back() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after, and if the state changes, its two words, and packed: the units given back.
local function fixed_window_give_back(begin, packed, now, limit, from, to, cost)
  if cost < 0 or cost > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if limit < 0 or limit > 4398046511104 or from < 0 or from > to or to > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if packed > 17592186044415 then return -17, 0, 0, 0 end -- Errc::corrupt_state: above max_used

  local is_block = packed % 2
  local used = (packed - is_block) / 2
  local is_stored = from <= begin and begin < to
  local is_present = now < to and from <= now + 60000000 -- max_ahead, us
  if not (is_stored and is_present and used > 0) then return 0, 0, 0, 0 end
  local given = cost
  if given > used then given = used end
  used = used - given
  local closed = is_block == 1 and now < begin
-- SHARED fixed_window_standing
  if given == 0 then return 1, left, 0, clear end
  return 1, left, 0, clear, begin, 2 * used + is_block, struct.pack('<i8', given)
end

local KIND, ARGUMENTS, DETAILS, decide = 22, '<i8i8i8i8', 1, fixed_window_give_back

