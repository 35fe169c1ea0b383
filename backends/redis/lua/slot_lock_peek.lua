-- The twin of peek() in src/rules/slot_lock.cpp: same names, same order, with slot_for() in its
-- place. Returns status, remaining, retry_after and reset_after.
local function slot_lock_peek(next, stamp, now, limit, interval, max_wait)
  if limit ~= 1 or interval < 1 or interval > 31536000000000 or max_wait < 0 or
    max_wait > 86400000000 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if next < stamp then return -17, 0, 0, 0 end -- Errc::corrupt_state

  local wait = 0
  if stamp > now + 60000000 then -- max_ahead, us
    wait = next - stamp
    if wait > max_wait then wait = max_wait end
  elseif next > now then
    wait = next - now
  end
  if wait > max_wait then return 0, 0, wait - max_wait, wait end
  if wait == 0 then return 1, 1, 0, 0 end
  return 1, 0, wait, wait
end

local KIND, ARGUMENTS, DETAILS, decide = 8, '<i8i8i8', 0, slot_lock_peek

