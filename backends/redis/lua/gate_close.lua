-- The twin of close() in src/rules/gate.cpp: same names, same order, with moment() in its place.
-- Returns status, remaining, retry_after, reset_after and, if that closes it later, the new until and
-- mark.
local function gate_close(until_, mark, now, limit, cap, ramp, spacing, span)
  if limit ~= 1 or cap < 1 or cap > 31536000000000 or ramp < 0 or ramp > 86400000000 or
    spacing < 0 or spacing > ramp or span < 0 or span > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if until_ > mark + 31536000000000 or mark > until_ + 172800000000 then
    return -17, 0, 0, 0 -- Errc::corrupt_state
  end

  local shut, renewed, due = true, false, now
  local stamp, free_at = mark, until_ + ramp
  if until_ < mark then stamp = until_ end
  if stamp > now + 60000000 then -- max_ahead, us
    local rest = until_ - stamp
    if rest > cap then rest = cap end
    renewed, until_ = true, now + rest
    due = until_
  elseif until_ == 0 or now >= free_at then
    shut = false
  else
    due = until_
    if mark > due then due = mark end
    if due > free_at then due = free_at end
  end

  if span > cap then span = cap end
  local later = now + span
  if later > 4503599627370496 then later = 4503599627370496 end -- word_limit
  if later > now and (later > until_ or renewed) then
    if until_ > later then later = until_ end
    return 1, 0, 0, later + ramp - now, later, now
  end
  local remaining, reset_after = 0, 0
  if now >= due or renewed then remaining = 1 end
  if shut then reset_after = until_ + ramp - now end
  return 1, remaining, 0, reset_after
end

local KIND, ARGUMENTS, DETAILS, decide = 10, '<i8i8i8i8i8', 0, gate_close

