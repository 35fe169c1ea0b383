-- The short cut of token_bucket_take.lua, for a stamp that is not ahead of the clock and a cost that is
-- not zero: same names. The words of the state are read as unsigned, so that one that is below zero is
-- one that is too large.
repeat
  local absent = '\18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  local message, raw = ARGV[1], redis.pcall('GET', KEYS[1]) or absent
  if #raw ~= 25 then break end
  local pack, read = struct.pack, struct.unpack
  local kind, spent, stamp = read('<BLL', raw)
  local capacity, refill, period, full_after, cost = read('<lllll', message, 9)
  if kind ~= 18 or spent > 4503599627370496 or stamp > now or cost < 1 or cost > capacity then break end

  local limit = capacity * period
  local level = (spent - spent % 2) / 2 - (now - stamp) * refill
  if level < 0 then level = 0 end
  local want = level + cost * period
  -- pack() drops what is behind the point: floor(a / b) is a / b, and its ceiling (a + b - 1) / b.
  if want > limit then
    local free = limit - level
    if free < 0 then free = 0 end
    return pack('<c8lllll', message, now, 0, free / period,
      (want - limit + refill - 1) / refill, (level + refill - 1) / refill)
  end
  local keep, before = read('<l', message, 49), read('<L', raw, 18)
  local expires = now + 1000 * keep
  if before <= expires and before > expires - 500000 then -- as in cell_write.lua
    redis.call('SETRANGE', KEYS[1], '1', pack('<ll', 2 * want, now))
  else
    redis.call('PSETEX', KEYS[1], string.format('%d', keep), pack('<Blll', 18, 2 * want, now, expires))
  end
  return pack('<c8lllll', message, now, 1, (limit - want) / period, 0,
    (want + refill - 1) / refill)
until true

