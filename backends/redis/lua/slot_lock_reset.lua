-- The twin of reset() in src/rules/slot_lock.cpp: same names, same order. Returns status,
-- remaining, retry_after, reset_after and the new next and stamp.
local function slot_lock_reset(next, stamp, now, limit)
  if limit ~= 1 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  return 1, 1, 0, 0, 0, 0
end

local KIND, ARGUMENTS, DETAILS, decide = 8, '<i8', 0, slot_lock_reset

