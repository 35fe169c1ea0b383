-- The twin of block() in src/rules/fixed_window.cpp: same names, same order, with block_until(), standing()
-- and what those call in their places. Returns status, remaining, retry_after, reset_after and, if the state
-- changes, the end of the block, and what is used of the window that it ends in.
local function fixed_window_block(last, packed, now, limit, width, b0, b1, b2, b3, b4, span)
  local code = packed % 512 -- of the width
  if span < 0 or span > 31536000000000 or limit < 1 or limit > 4398046511104 or
    width < 0 or width > 2251799813685248 or b0 < 0 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

-- SHARED fixed_window_present
-- SHARED fixed_window_foreign
  local function is_stored(from, to)
    local unit, wide, stored_to = 2 ^ ((code - code % 8) / 8), 8 * (to - from), to
    local top = (8 + code % 8) * unit
    if to > 4503599627370496 then stored_to = 4503599627370496 end -- word_limit
    return last == stored_to and wide <= top and wide > top - unit
  end
  local function moment(at, from, to)
    if last <= from then return from, 0, to end
    local used = (packed - code) / 512
    if is_stored(from, to) then return from, used, to end
    local begin, _, now_used, _, unused_at =
      fixed_window_foreign(last, used, code, at, limit, width, b0, b1, b2, b3, b4, 0, from, to)
    return begin, now_used, unused_at
  end

  local till, new_last, new_packed = now + span
  if till > 4503599627370496 then till = 4503599627370496 end -- word_limit
  if span > 0 and not (code == 417 and last >= till) then
    -- block_until(): what counts at the end of the block if nothing is admitted until then
    local begin, ends, used = 0, 0, 0
    if width > 0 then
      ends = b0
      if till >= b0 then
        begin = till - (till - b0) % width
        ends = begin + width
      end
    elseif till >= b3 and till < b4 then begin, ends = b3, b4
    elseif till >= b2 and till < b3 then begin, ends = b2, b3
    elseif till >= b1 and till < b2 then begin, ends = b1, b2
    elseif till >= b0 and till < b1 then begin, ends = b0, b1
    end
    if ends <= begin then -- further off than the calendar was sent
      if last > till then used = (packed - code) / 512 end
    else
      begin, used = moment(till, begin, ends)
      if till < begin or (used > 0 and till == begin) then till = begin + 1 end
      if used > 8796093022207 then used = 8796093022207 end -- max_used
    end
    last, packed, code = till, used * 512 + 417, 417
    new_last, new_packed = last, packed
  end

  -- standing()
  local _, used, unused_at = moment(now, from, to)
  local reset_after = 0
  if used > limit then used = limit end
  if used > 0 then reset_after = unused_at - now end
  return 1, limit - used, 0, reset_after, new_last, new_packed
end

local KIND, ARGUMENTS, DETAILS, decide = 16, '<i8i8i8i8i8i8i8i8', 0, fixed_window_block
