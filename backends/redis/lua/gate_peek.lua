-- The twin of peek() in src/rules/gate.cpp: same names, same order, with moment() in its place.
-- Returns status, remaining, retry_after and reset_after.
local function gate_peek(until_, mark, now, limit, cap, ramp, spacing)
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
    return 1, 1, 0, rest + ramp
  end
  if until_ == 0 or now >= free_at then return 1, 1, 0, 0 end
  local due = until_
  if mark > due then due = mark end
  if due > free_at then due = free_at end
  if now < due then return 0, 0, due - now, free_at - now end
  return 1, 1, 0, free_at - now
end

local KIND, ARGUMENTS, DETAILS, decide = 10, '<i8i8i8i8', 0, gate_peek

