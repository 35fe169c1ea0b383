--@ piece slot_lock_check
-- The twin of the first lines of the checks in src/rules/slot_lock.cpp, in their place in a rule.
  if limit ~= 1 or interval < 1 or interval > Rule.max_interval then return Errc.invalid_argument end

--@ piece slot_lock_view
-- The twin of slot_for() in src/rules/slot_lock.cpp, in its place in a rule: the next free slot, and how far it lies
-- ahead: at most `max_wait`, if the clock was set back.
  if next < stamp then return Errc.corrupt_state end
  local slot = now
  if stamp > now + Rule.max_ahead then
    local queue = next - stamp
    if queue > max_wait then queue = max_wait end
    slot = now + queue
  elseif next > now then
    slot = next
  end
  local wait = slot - now

--@ operation slot_lock_acquire(next, stamp | limit, interval, max_wait)
-- The twin of acquire() in src/rules/slot_lock.cpp: same names, same order, with slot_for() in its
-- place. Returns status, remaining, retry_after, reset_after and, if allowed, the new next and stamp.
--@ use slot_lock_check
  if max_wait < 0 or max_wait > Rule.max_horizon then return Errc.invalid_argument end
--@ use slot_lock_view
  if wait > max_wait then return 0, 0, wait - max_wait, wait end

  next = slot + interval
  if next > word_limit then next = word_limit end
  return 1, 0, wait, next - now, next, now

--@ operation slot_lock_peek(next, stamp | limit, interval, max_wait)
-- The twin of peek() in src/rules/slot_lock.cpp: same names, same order, with slot_for() in its
-- place. Returns status, remaining, retry_after and reset_after.
--@ use slot_lock_check
  if max_wait < 0 or max_wait > Rule.max_horizon then return Errc.invalid_argument end
--@ use slot_lock_view
  if wait > max_wait then return 0, 0, wait - max_wait, wait end
  if wait == 0 then return 1, 1, 0, 0 end
  return 1, 0, wait, wait

--@ operation slot_lock_cancel(next, stamp | limit, interval, slot)
-- The twin of cancel() in src/rules/slot_lock.cpp: same names, same order, with slot_for() in its
-- place. Returns status, remaining, retry_after, reset_after and, if allowed, the new next and stamp.
--@ use slot_lock_check
  if slot < 0 or slot > word_limit then return Errc.invalid_argument end
  if next < stamp then return Errc.corrupt_state end

  local set_back = stamp > now + Rule.max_ahead
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

--@ operation slot_lock_block(next, stamp | limit, interval, span)
-- The twin of block() in src/rules/slot_lock.cpp: same names, same order, with slot_for() and
-- most_ahead() in their places. Returns status, remaining, retry_after, reset_after and, if that
-- changes them, the new next and stamp.
--@ use slot_lock_check
  if span < 0 or span > Rule.max_interval then return Errc.invalid_argument end
  local max_wait = interval + Rule.max_horizon + Rule.max_ahead
  if max_wait < span then max_wait = span end
--@ use slot_lock_view
  if span == 0 or wait > max_wait then
    if wait == 0 then return 1, 1, 0, 0 end
    return 1, 0, 0, wait
  end

  next = now + span
  if slot >= next then next = slot + 1 end
  if next > word_limit then next = word_limit end
  return 1, 0, 0, next - now, next, now

--@ operation slot_lock_reset(next, stamp | limit)
-- The twin of reset() in src/rules/slot_lock.cpp: same names, same order. Returns status,
-- remaining, retry_after, reset_after and the new next and stamp.
  if limit ~= 1 then return Errc.invalid_argument end
  return 1, 1, 0, 0, 0, 0
