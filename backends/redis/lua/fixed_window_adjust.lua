-- The twin of adjust() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and, if the state changes, its two words.
local function fixed_window_adjust(begin, packed, now, limit, width, b0, b1, b2, b3, b4, amount)
  if amount < -4503599627370496 or amount > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if limit < 0 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  local cost = 0
-- SHARED fixed_window_check
-- SHARED fixed_window_view
  local new_used, new_begin, new_packed = used + amount, nil, nil
  if new_used < 0 then new_used = 0 end
  if new_used > 8796093022207 then new_used = 8796093022207 end -- max_used
  if closed and now < from then new_used = used end
  if new_used ~= used then
    new_begin, new_packed = begin, 2 * new_used
    if closed then new_packed = new_packed + 1 end
  end
  used = new_used
-- SHARED fixed_window_standing
  return 1, left, 0, clear, new_begin, new_packed
end

local KIND, ARGUMENTS, DETAILS, decide = 22, '<i8i8i8i8i8i8i8i8', 0, fixed_window_adjust

