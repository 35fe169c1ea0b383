-- The twin of adjust() in src/rules/fixed_window.cpp: same names, same order, with moment(),
-- is_stored() and window_at() in their place. Returns status, remaining, retry_after, reset_after
-- and, if the state changes, the new end of the stored window, and what is used of it.
local function fixed_window_adjust(last, packed, now, limit, width, b0, b1, b2, b3, b4, amount)
  local code = packed % 512 -- of the width
  if amount < -4503599627370496 or amount > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if limit < 0 or limit > 4398046511104 or width < 0 or width > 2251799813685248 or b0 < 0 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local function changed(used)
    if used + amount < 0 then return 0 end
    if used + amount > 8796093022207 then return 8796093022207 end -- max_used
    return used + amount
  end

-- SHARED fixed_window_present
  local used, _, unused_at, own = 0, nil, to
  if last > from then
    used = (packed - code) / 512
    local unit, wide, stored_to = 2 ^ ((code - code % 8) / 8), 8 * (to - from), to
    local top = (8 + code % 8) * unit
    if to > 4503599627370496 then stored_to = 4503599627370496 end -- word_limit
    if last == stored_to and wide <= top and wide > top - unit then
      own = true
    else
-- SHARED fixed_window_foreign
      local is_closed, is_changed = code == 417 and now < last, false -- blocked
      if is_closed then
        local new_used = changed(used)
        is_changed = new_used ~= used and last < to -- ends_in()
        if is_changed then used = new_used end
      end
      local counted = used
      from, to, used, _, unused_at =
        fixed_window_foreign(last, used, code, now, limit, width, b0, b1, b2, b3, b4, 0, from, to)
      if is_closed then
        local reset_after = 0 -- standing()
        if used > 0 and limit > 0 then reset_after = unused_at - now end
        if is_changed then return 1, 0, 0, reset_after, last, counted * 512 + code end
        return 1, 0, 0, reset_after
      end
    end
  end

  local new_used = changed(used)
  local remaining, reset_after = limit - new_used, 0
  if remaining < 0 then remaining = 0 end
  if new_used == used then
    if used > 0 then reset_after = unused_at - now end
    return 1, remaining, 0, reset_after
  end
  if new_used > 0 then reset_after = to - now end
  if not own then
    local fraction, exponent = math.frexp(to - from) -- code_of()
    fraction = 16 * fraction
    code = 8 * exponent - 16 + fraction + -fraction % 1
  end
  if to > 4503599627370496 then to = 4503599627370496 end
  return 1, remaining, 0, reset_after, to, new_used * 512 + code
end

local KIND, ARGUMENTS, DETAILS, decide = 16, '<i8i8i8i8i8i8i8i8', 0, fixed_window_adjust

