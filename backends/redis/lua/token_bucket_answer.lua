-- The twin of answer() in src/rules/token_bucket_reserve.cpp in its place in a rule, with check_ask() and place():
-- same names, same order, but that a wait is judged behind the shape, which says how long it may be. From `max_wait`, `min_cost`, `cost` and `spends` to what the rule returns.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > capacity then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if min_cost < 0 then return -2, 0, 0, 0 end
  local charge = cost * period
-- SHARED token_bucket_view
  if min_cost > cost or max_wait < 0 or max_wait > longest then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

  local free, reset_after = limit - level, 0
  if free < 0 or closed then free = 0 end
  local remaining = (free - free % period) / period
  local latest = now + max_wait
  local reach = latest - latest % interval - at
  local is_open = reach >= 0 or not closed
  if reach < 0 then reach = 0 end
  local granted, most = -1, limit + reach * refill - level
  if most >= 0 and is_open then granted = (most - most % period) / period end
  if granted > cost then granted = cost end
  if granted < min_cost then
    local over = level + min_cost * period - limit
    if over < 0 then over = 0 end
    local covered = at + (over + -over % refill) / refill
    if level > 0 or at > now then
      reset_after = at + (level + -level % refill) / refill
      reset_after = reset_after - now + (interval - reset_after % interval) % interval
    end
    return 0, remaining, covered - now + (interval - covered % interval) % interval - max_wait,
      reset_after, nil, nil, struct.pack('<i8i8i8', 0, 0, 0)
  end

  local want = level + granted * period
  local wait, new_level, new_stamp = 0, want, at
  if closed then wait = at - now end
  if want > limit then
    local over = want - limit
    new_stamp = at + (over + -over % refill) / refill
    new_stamp = new_stamp + -new_stamp % interval
    wait = new_stamp - now
    if new_stamp > 4503599627370496 then new_stamp = 4503599627370496 end -- word_limit
    local least = 0
    if interval == 1 then least = limit - period + 1 end
    new_level = want - (new_stamp - at) * refill
    if new_level < least then new_level = least end
    if new_level > limit then new_level = limit end
  end
  local spent, before = 2 * new_level, 2 * level
  if closed or new_stamp > at then spent = spent + 1 end
  if closed then before = before + 1 end
  local output = struct.pack('<i8i8i8', granted, before, at)
  local after = level
  if spends then
    after, free = want, limit - want
    if free < 0 or closed then free = 0 end
    remaining = (free - free % period) / period
  end
  if after > 0 or at > now then
    reset_after = at + (after + -after % refill) / refill
    reset_after = reset_after - now + (interval - reset_after % interval) % interval
  end
  if spends and granted > 0 then
    return 1, remaining, wait, reset_after, spent, new_stamp, output
  end
  return 1, remaining, wait, reset_after, nil, nil, output
