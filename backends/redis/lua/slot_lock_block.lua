-- The twin of block() in src/rules/slot_lock.cpp: same names, same order, with slot_for() and
-- most_ahead() in their places. Returns status, remaining, retry_after, reset_after and, if that
-- changes them, the new next and stamp.
local function slot_lock_block(next, stamp, now, limit, interval, span)
  if limit ~= 1 or interval < 1 or interval > 31536000000000 or span < 0 or
    span > 31536000000000 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if next < stamp then return -17, 0, 0, 0 end -- Errc::corrupt_state

  local most = interval + 86460000000 -- max_horizon + max_ahead, us
  if most < span then most = span end
  local slot = now
  if stamp > now + 60000000 then -- max_ahead, us
    local queue = next - stamp
    if queue > most then queue = most end
    slot = now + queue
  elseif next > now then
    slot = next
  end
  local wait = slot - now
  if span == 0 or wait > most then
    if wait == 0 then return 1, 1, 0, 0 end
    return 1, 0, 0, wait
  end

  next = now + span
  if slot >= next then next = slot + 1 end
  if next > 4503599627370496 then next = 4503599627370496 end -- word_limit
  return 1, 0, 0, next - now, next, now
end

local KIND, ARGUMENTS, DETAILS, decide = 8, '<i8i8i8', 0, slot_lock_block
