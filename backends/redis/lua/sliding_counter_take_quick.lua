-- The short cut of sliding_counter_take.lua, for a counter of the same span whose window is not ahead
-- of the clock: same names. Words are read as unsigned, so that one that is below zero is one that is
-- too large. The time to live is renewed when a window starts: it lasts for two, and longer than the
-- clock may be set back.
repeat
  local message, key, call = ARGV[1], KEYS[1], redis.call
  if #message ~= 40 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '32')
  if #raw ~= 33 then break end
  local pack, read = struct.pack, struct.unpack
  local kind, start, old_span, current, previous = read('<BLLLL', raw)
  local limit, span, cost = read('<LLL', message, 9)
  if kind ~= 3 or span ~= old_span or span < 1 or span > 4398046511104 or cost < 1 or
    cost > limit or limit > 1099511627776 or start > now or current > 1099511627776 or
    previous > 1099511627776 then break end

  local aligned = now - now % span
  local advanced = aligned ~= start
  if advanced then
    if aligned == start + span then previous = current else previous = 0 end
    start, current = aligned, 0
  end
  -- scale(): floor(a * b / c), in parts of ten bits of a where the product leaves the whole numbers
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
  local left = limit - current - previous + scale(previous, now - start, span)

  if left < cost then
    local room, fits, clear = limit - cost, start + span, 0 -- fits_at()
    if current > 0 then
      clear = start + 2 * span - now
    elseif previous > 0 then
      clear = start + span - now
    end
    if room > current and previous > 0 then
      if room - current >= previous then
        fits = start
      else
        fits = start + span - scale(room - current, span, previous)
      end
    elseif current > room then
      fits = start + 2 * span - scale(room, span, current)
    end
    if left < 0 then left = 0 end
    return pack('<c8lllll', message, now, 0, left, fits - now, clear)
  end

  -- First: a right that is missing shows before anything is written.
  if advanced then call('PEXPIRE', key, string.format('%d', read('<L', message, 33)), 'GT') end
  call('SETRANGE', key, '1', pack('<llll', start, span, current + cost, previous))
  return pack('<c8lllll', message, now, 1, left - cost, 0, start + 2 * span - now)
until true

