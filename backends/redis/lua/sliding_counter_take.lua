-- The twin of SlidingCounterRule::take in src/algorithms/sliding_counter.cpp: same names, same order,
-- with moment(), fits_at() and clear_after() in their place. Returns status, remaining, retry_after
-- and reset_after.
local function sliding_counter_take(head, table, now, limit, span, cost)
  if limit < 1 or limit > 1099511627776 or span < 1 or span > 4398046511104 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  local start, old_span, current, previous = unpack(head, 1, 4)
  if old_span > 4398046511104 or current > 1099511627776 or previous > 1099511627776 then
    corrupt()
    return -17, 0, 0, 0 -- Errc::corrupt_state
  end

  -- floor(a * b / c), in parts of ten bits of a where the product would leave the whole numbers.
  local function scale(a, b, c)
    if a * b <= 4503599627370496 then return (a * b - a * b % c) / c end
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
  local function estimate(start, span, current, previous, at)
    return current + previous - scale(previous, at - start, span)
  end

  -- moment()
  local at, spent, weighed = now, 0, false
  if old_span == 0 then
    start, current, previous = now - now % span, 0, 0
  elseif start > now + 60000000 then -- max_ahead, us
    spent = current + previous
    if spent > limit - cost then spent = limit - cost end
    start, current, previous, weighed = now - now % span, spent, 0, true
  else
    if start > at then at = start end
    local aligned = at - at % old_span
    if aligned ~= start then -- advanced()
      if aligned == start + old_span then previous = current else previous = 0 end
      start, current = aligned, 0
    end
    spent = estimate(start, old_span, current, previous, at)
    if old_span ~= span then -- converted()
      local held = current + previous
      current, previous, weighed = spent, 0, true
      if current > 1099511627776 then current = 1099511627776 end
      if span > old_span and held > 0 then previous = limit end
      start = at - at % span
      spent = estimate(start, span, current, previous, at)
    end
  end

  local left = limit - spent
  if left < 0 then left = 0 end
  if cost <= left then current = current + cost end
  local clear = 0
  if current > 0 then
    clear = start + 2 * span - now
  elseif previous > 0 then
    clear = start + span - now
  end
  if cost > left then
    local room, fits = limit - cost, start + span -- fits_at()
    if room > current and previous > 0 then
      if room - current >= previous then
        fits = start
      else
        fits = start + span - scale(room - current, span, previous)
      end
    elseif current > room then
      fits = start + 2 * span - scale(room, span, current)
    end
    return 0, left, fits - now, clear
  end
  if cost > 0 then
    local counts = struct.pack('<i8i8i8i8', start, span, current, previous)
    if weighed then counts = counts .. struct.pack('<i8', now) end
    put(0, counts)
  end
  return 1, left - cost, 0, clear
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 3, '<i8i8i8', 4, 0, sliding_counter_take
