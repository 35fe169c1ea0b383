--@ piece sliding_window_counter_check
-- The first lines of the twin of SlidingWindowCounterRule::check in src/rules/sliding_window_counter.cpp, in its place.
  if limit < 1 or limit > Rule.max_limit or span < 1 or span > Rule.max_span then
    return Errc.invalid_argument
  end

--@ piece sliding_window_counter_view
-- The twins of read() and measure() in src/rules/sliding_window_counter.cpp, with scale(), in their place in a
-- rule: from head, now, limit, span and cost to the counts at one instant.
  local start, current, previous, closed = unpack(head, 1, 4)
  if current > Rule.max_limit or previous > Rule.max_limit then
    return Errc.corrupt_state
  end

  -- floor(a * b / c), in parts of ten bits of a where the product would leave the whole numbers.
  local function scale(a, b, c)
    if a * b <= word_limit then return (a * b - a * b % c) / c end
    local quotient, rest = 0, 0
    for part = 4, 0, -1 do
      local unit = 1024 ^ part
      local digit = (a - a % unit) / unit
      a = a - digit * unit
      local sum = rest * 1024 + digit * b
      rest = sum % c
      quotient = quotient * 1024 + (sum - rest) / c
    end
    return quotient
  end

  -- measure()
  local at = now
  if start > now + Rule.max_ahead then
    local units = current + previous
    if units > limit - cost then units = limit - cost end
    start, current, previous = now - now % span, units, 0
  else
    if start > at then at = start end
    local aligned = at - at % span
    if aligned ~= start then
      if aligned == start + span then previous = current else previous = 0 end
      start, current = aligned, 0
    end
  end

--@ piece sliding_window_counter_standing
-- The twin of standing() in src/rules/sliding_window_counter.cpp, with count() and clear_after(), in its place
-- in a rule.
  local estimate = current + previous - scale(previous, at - start, span)
  local left, clear = limit - estimate, 0
  if left < 0 or closed > now then left = 0 end
  if current > 0 then
    clear = start + 2 * span - now
  elseif previous > 0 then
    clear = start + span - now
  end
  if closed - now > clear then clear = closed - now end

--@ piece sliding_window_counter_decide
-- The twin of decide() in src/rules/sliding_window_counter.cpp, with fits_at(), in its place in a rule: ends it if it
-- refuses.
--@ use sliding_window_counter_check
  if cost < 0 then return Errc.invalid_cost end
  if cost > limit then return Errc.cost_exceeds_capacity end
--@ use sliding_window_counter_view
--@ use sliding_window_counter_standing
  local room, fits = limit - cost, now
  if closed > now or estimate > room then
    if estimate > room then
      fits = start + span
      if room < current then
        fits = fits + span - scale(room, span, current)
      else
        fits = fits - scale(room - current, span, previous)
      end
    end
    if closed > fits then fits = closed end
    return 0, left, fits - now, clear
  end

--@ operation sliding_window_counter_acquire(head[4] | limit, span, cost)
-- The twin of SlidingWindowCounterRule::acquire in src/rules/sliding_window_counter.cpp: same names, same order.
-- Returns status, remaining, retry_after and reset_after.
--@ use sliding_window_counter_decide
  if cost == 0 then return 1, left, 0, clear end
  local counts = struct.pack('<i8i8i8', start, current + cost, previous)
  if closed > 0 then counts = counts .. struct.pack('<i8', 0) end
  put(0, counts)
  return 1, left - cost, 0, start + 2 * span - now

--@ operation sliding_window_counter_peek(head[4] | limit, span, cost)
-- The twin of SlidingWindowCounterRule::peek in src/rules/sliding_window_counter.cpp:
-- sliding_window_counter_acquire without what that writes.
--@ use sliding_window_counter_decide
  return 1, left, 0, clear

--@ operation sliding_window_counter_reset(head[4] | limit)
-- The twin of SlidingWindowCounterRule::reset: same names, same order.
  if limit < 1 or limit > Rule.max_limit then return Errc.invalid_argument end
  put(0, string.rep('\0', 32))
  return 1, limit, 0, 0

--@ operation sliding_window_counter_adjust(head[4] | limit, span, amount, change, taken)
-- The twin of SlidingWindowCounterRule::adjust in src/rules/sliding_window_counter.cpp: same names, same order.
--@ use sliding_window_counter_check
  if amount < 0 or amount > word_limit then return Errc.invalid_cost end
  if change < 0 or change > 3 or taken < 0 or taken > word_limit then
    return Errc.invalid_argument
  end
  if amount > Rule.max_limit then amount = Rule.max_limit end
  local window, cost = taken - taken % span, 0
--@ use sliding_window_counter_view
  local is_before, changed = window + span == start, 0
  local function take_off(count)
    local units = amount - changed
    if units > count then units = count end
    changed = changed + units
    return count - units
  end
  local function add(count)
    changed = Rule.max_limit - count
    if changed > amount then changed = amount end
    return count + changed
  end
  if change == 0 then -- refund
    if window == start then current = take_off(current) end
    if is_before then previous = take_off(previous) end
  elseif change == 1 then -- charge
    if is_before then previous = add(previous) end
    if window >= start then current = add(current) end
  elseif change == 2 then -- penalize
    current = add(current)
  else -- reward
    current = take_off(current)
    previous = take_off(previous)
  end
  if changed > 0 then put(0, struct.pack('<i8i8i8', start, current, previous)) end
--@ use sliding_window_counter_standing
  return 1, left, 0, clear, struct.pack('<i8', changed)

--@ operation sliding_window_counter_block(head[4] | limit, span, length)
-- The twin of SlidingWindowCounterRule::block in src/rules/sliding_window_counter.cpp: same names, same order.
--@ use sliding_window_counter_check
  if length < 0 or length > Rule.max_block then return Errc.invalid_argument end
  local cost = 0
--@ use sliding_window_counter_view
  local till = now + length
  if till > word_limit then till = word_limit end
  if length > 0 and till > closed then
    closed = till
    put(0, struct.pack('<i8', head[1]))
    put(3, struct.pack('<i8', till))
  end
--@ use sliding_window_counter_standing
  return 1, left, 0, clear
