-- The twin of take() in src/rules/slot_lock.cpp: same names, same order, with slot_for() in its
-- place. Returns status, remaining, retry_after, reset_after and, if allowed, the new next and stamp.
local function slot_lock_take(next, stamp, now, limit, interval, max_wait)
  if limit ~= 1 or interval < 1 or interval > 31536000000000 or max_wait < 0 or
    max_wait > 86400000000 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if next < stamp then return -17, 0, 0, 0 end -- Errc::corrupt_state

  local slot = now
  if stamp > now + 60000000 then -- max_ahead, us
    local queue = next - stamp
    if queue > max_wait then queue = max_wait end
    slot = now + queue
  elseif next > now then
    slot = next
  end
  local wait = slot - now
  if wait > max_wait then return 0, 0, wait - max_wait, wait end

  next = slot + interval
  if next > 4503599627370496 then next = 4503599627370496 end -- word_limit
  return 1, 0, wait, next - now, next, now
end

local KIND, ARGUMENTS, DETAILS, decide = 8, '<i8i8i8', 0, slot_lock_take

