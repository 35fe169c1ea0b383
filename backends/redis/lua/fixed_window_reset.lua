-- The twin of reset() in src/algorithms/fixed_window.cpp: same names, same order. Returns status,
-- remaining, retry_after, reset_after and the new start and used.
local function fixed_window_reset(start, used, now, limit)
  if limit < 0 or limit > 4503599627370496 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  return 1, limit, 0, 0, 0, 0
end

local KIND, ARGUMENTS, DETAILS, decide = 4, '<i8', 0, fixed_window_reset

