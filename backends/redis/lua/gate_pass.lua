-- The twin of pass() in src/rules/gate.cpp: same names, same order, with moment() in its place.
-- Returns status, remaining, retry_after, reset_after and, if it passes within the ramp, the new until
-- and mark.
local function gate_pass(until_, mark, now, limit, cap, ramp, spacing)
  if limit ~= 1 or cap < 1 or cap > 31536000000000 or ramp < 0 or ramp > 86400000000 or
    spacing < 0 or spacing > ramp then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if until_ > mark + 31536000000000 or mark > until_ + 172800000000 then
    return -17, 0, 0, 0 -- Errc::corrupt_state
  end

  local stamp, free_at = mark, until_ + ramp
  if until_ < mark then stamp = until_ end
  if stamp > now + 60000000 then -- max_ahead, us
    local rest = until_ - stamp
    if rest > cap then rest = cap end
    until_ = now + rest
  elseif until_ == 0 or now >= free_at then
    return 1, 1, 0, 0
  else
    local due = until_
    if mark > due then due = mark end
    if due > free_at then due = free_at end
    if now < due then return 0, 0, due - now, free_at - now end
  end

  local left = until_ + ramp - now
  if until_ > now then return 1, 0, 0, left, until_, now end
  mark = now + spacing
  if mark > 4503599627370496 then mark = 4503599627370496 end -- word_limit
  if spacing == 0 then return 1, 1, 0, left, until_, mark end
  return 1, 0, 0, left, until_, mark
end

local KIND, ARGUMENTS, DETAILS, decide = 10, '<i8i8i8i8', 0, gate_pass

