-- The twins of read() and look() in src/rules/sliding_window_counter.cpp, with scale(), in their place in a rule:
-- from head, now, limit, span and cost to the counts at one instant.
  local start, current, previous, closed = unpack(head, 1, 4)
  if current > 1099511627776 or previous > 1099511627776 then -- max_limit
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

  -- look()
  local at = now
  if start > now + 60000000 then -- max_ahead, us
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
