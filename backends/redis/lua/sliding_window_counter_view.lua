-- The twins of read() and look() in src/rules/sliding_window_counter.cpp with what those call, in their place
-- in a rule: from head, now, limit, span and cost to the counts and `spent`, what counts for who asks, at one
-- instant; and until when the key is `closed`. The counts are those of windows of `width`: of `span`, or there
-- are the functions count(), from counts as stored and what they weigh to `spent`, and fits_at(), from when they
-- ease to when they fit. `late` is the spare part of the window, as it stands in the word of `current`.
  local start, old_span, packed, previous = unpack(head, 1, 4)
  local current = packed % 2199023255552 -- part
  local late, closed = packed - current, 0
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

  -- look()
  local at, spent, weighed, width, count, fits_at = now, 0, false, span, nil, nil
  if old_span == 0 then
    start, current, previous, late = now - now % span, 0, 0, 4501400604114944 -- parts - 1
  elseif start > now + 60000000 then -- max_ahead, us
    spent = current + previous
    if spent > limit - cost then spent = limit - cost end
    start, current, previous, late, weighed = now - now % span, spent, 0, 0, true
    if spent == 0 then late = 4501400604114944 end
  else
    if start > at then at = start end
    width = old_span
    local aligned = at - at % width
    if aligned ~= start then -- advance()
      if aligned == start + width then previous = current else previous = 0 end
      start, current, late = aligned, 0, 4501400604114944
    end
    spent = estimate(start, width, current, previous, at)
    if width ~= span then -- count()
      local full, since
      local function drained(elapsed)
        local gone = scale(elapsed, limit, span)
        if gone >= full then return 0 end
        return full - gone
      end
      count = function(start, current, previous, late, weight)
        spent = weight
        local spare = late / 2199023255552 * width
        since = start + width - (spare - spare % 2048) / 2048
        full = estimate(start, width, current, previous, since)
        if spent > 0 and at > since then
          local rest = drained(at - since)
          if rest < spent then spent = rest end
        end
      end
      fits_at = function(eases, room)
        if eases <= since or drained(eases - since) > room then return eases end
        local wait = scale(full - room, span, limit)
        if drained(wait) > room then wait = wait + 1 end
        return since + wait
      end
      count(head[1], packed % 2199023255552, head[4], packed - packed % 2199023255552, spent)
    end
  end
