-- The twin of cancel() in src/rules/slot_lock.cpp: same names, same order, with slot_for() in its
-- place. Returns status, remaining, retry_after, reset_after and, if allowed, the new next and stamp.
local function slot_lock_cancel(next, stamp, now, limit, interval, slot)
  if limit ~= 1 or interval < 1 or interval > 31536000000000 or slot < 0 or
    slot > 4503599627370496 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if next < stamp then return -17, 0, 0, 0 end -- Errc::corrupt_state

  local set_back = stamp > now + 60000000 -- max_ahead, us
  local is_last = slot + interval == next
  if not is_last or now >= next or set_back then
    local wait = 0
    if next > now and not set_back then wait = next - now end
    if wait == 0 then return 0, 1, 0, 0 end
    return 0, 0, 0, wait
  end
  if stamp > slot then stamp = slot end
  if slot > now then return 1, 0, 0, slot - now, slot, stamp end
  return 1, 1, 0, 0, slot, stamp
end

local KIND, ARGUMENTS, DETAILS, decide = 8, '<i8i8i8', 0, slot_lock_cancel

