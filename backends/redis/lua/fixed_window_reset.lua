-- The twin of reset() in src/rules/fixed_window.cpp: same names, same order. Returns status,
-- remaining, retry_after, reset_after and the two words of the new state.
local function fixed_window_reset(begin, packed, now, limit)
  if limit < 0 or limit > 4398046511104 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if packed > 17592186044415 then return -17, 0, 0, 0 end -- Errc::corrupt_state: above max_used
  return 1, limit, 0, 0, 0, 0
end

local KIND, ARGUMENTS, DETAILS, decide = 22, '<i8', 0, fixed_window_reset

