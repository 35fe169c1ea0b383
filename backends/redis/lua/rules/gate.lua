--@ piece gate_check
-- The twin of check() in src/rules/gate.cpp, in its place in a rule.
  if limit ~= 1 or cap < 1 or cap > Rule.max_cap or ramp < 0 or ramp > Rule.max_ramp or
    spacing < 0 or spacing > ramp then return Errc.invalid_argument end

--@ piece gate_view
-- The twin of the beginning of moment() in src/rules/gate.cpp, in its place in a rule: when the gate was closed last,
-- and when its ramp ends.
  if until_ > mark + Rule.max_cap or mark > until_ + Rule.max_ramp + Rule.max_ramp then
    return Errc.corrupt_state
  end

  local stamp, free_at = mark, until_ + ramp
  if until_ < mark then stamp = until_ end

--@ piece gate_decide
-- What pass() and peek() in src/rules/gate.cpp have in common, with moment(), in their place in a rule: ends it if the
-- gate is open or closed. Within the ramp, `left` is what is left of it.
--@ use gate_check
--@ use gate_view
  if stamp > now + Rule.max_ahead then
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

--@ operation gate_close(until_, mark | limit, cap, ramp, spacing, span)
-- The twin of close() in src/rules/gate.cpp: same names, same order, with moment() in its place.
-- Returns status, remaining, retry_after, reset_after and, if that closes it later, the new until and
-- mark.
--@ use gate_check
  if span < 0 or span > word_limit then return Errc.invalid_argument end
--@ use gate_view
  local shut, renewed, due = true, false, now
  if stamp > now + Rule.max_ahead then
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
  if later > word_limit then later = word_limit end
  if later > now and (later > until_ or renewed) then
    if until_ > later then later = until_ end
    return 1, 0, 0, later + ramp - now, later, now
  end
  local remaining, reset_after = 0, 0
  if now >= due or renewed then remaining = 1 end
  if shut then reset_after = until_ + ramp - now end
  return 1, remaining, 0, reset_after

--@ operation gate_pass(until_, mark | limit, cap, ramp, spacing)
-- The twin of pass() in src/rules/gate.cpp: same names, same order, with moment() in its place.
-- Returns status, remaining, retry_after, reset_after and, if it passes within the ramp, the new until
-- and mark.
--@ use gate_decide
  if until_ > now then return 1, 0, 0, left, until_, now end
  mark = now + spacing
  if mark > word_limit then mark = word_limit end
  if spacing == 0 then return 1, 1, 0, left, until_, mark end
  return 1, 0, 0, left, until_, mark

--@ operation gate_peek(until_, mark | limit, cap, ramp, spacing)
-- The twin of peek() in src/rules/gate.cpp: same names, same order, with moment() in its place.
-- Returns status, remaining, retry_after and reset_after.
--@ use gate_decide
  return 1, 1, 0, left

--@ operation gate_open(until_, mark | limit)
-- The twin of open() in src/rules/gate.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and the new until and mark.
  if limit ~= 1 then return Errc.invalid_argument end
  return 1, 1, 0, 0, 0, 0
