-- The twins of read() and moment() in src/algorithms/sliding_counter.cpp with what those call, in their place
-- in a rule: from head, now, limit, span and cost to the counts and `spent`, what they weigh, at one instant;
-- and until when the key is `closed`.
  local start, old_span, current, previous = unpack(head, 1, 4)
  local closed = 0
  if old_span > 4398046511104 or current > 1099511627776 or previous > 1099511627776 then
    if old_span >= 8796093022208 then -- blocked
      old_span, closed = old_span - 8796093022208, word(5)
    end
    if old_span > 4398046511104 or current > 1099511627776 or previous > 1099511627776 then
      corrupt()
      return -17, 0, 0, 0 -- Errc::corrupt_state
    end
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
