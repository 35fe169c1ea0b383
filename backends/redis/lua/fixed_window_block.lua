-- The twin of block() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and, if the state changes, its two words.
local function fixed_window_block(begin, packed, now, limit, width, b0, b1, b2, b3, b4, span)
  if span < 0 or span > 31536000000000 or limit < 1 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  local cost = 0
-- SHARED fixed_window_check
  local function view_at(begin, packed, now)
-- SHARED fixed_window_view
    return from, to, begin, used, closed
  end
  local till, new_begin, new_packed = now + span, nil, nil -- `until` is a word of Lua's
  if till > 4503599627370496 then till = 4503599627370496 end -- word_limit
  if span > 0 and (packed % 2 == 0 or begin < till) then
    local last_from, _, _, last_used = view_at(begin, packed, till)
    begin, packed = till, 2 * last_used + 1
    if begin < last_from then begin = last_from end
    new_begin, new_packed = begin, packed
  end
  local from, to, used, closed
  from, to, begin, used, closed = view_at(begin, packed, now)
-- SHARED fixed_window_standing
  return 1, left, 0, clear, new_begin, new_packed
end

local KIND, ARGUMENTS, DETAILS, decide = 22, '<i8i8i8i8i8i8i8i8', 0, fixed_window_block

