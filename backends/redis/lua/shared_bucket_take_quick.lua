-- The short cut of shared_bucket_take.lua, for a bucket whose quota stands and whose stamp is not ahead
-- of the clock, and a cost that is not zero: same names. Words are read as unsigned, so that one that is
-- below zero is one that is too large.
repeat
  local message, key, call = ARGV[1], KEYS[1], redis.call
  if #message ~= 40 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '56')
  if #raw ~= 57 then break end
  local pack, read = struct.pack, struct.unpack
  local kind, version, capacity, refill, period, level, spent, stamp = read('<BLLLLLLL', raw)
  local reported, cost, keep_alive = read('<LLL', message, 9)
  if kind ~= 6 or version < 1 or version > 4503599627370496 or cost < 1 or cost > capacity or
    reported > 4503599627370496 or keep_alive < 1 or keep_alive > 2251799813685248 or
    now >= stamp + keep_alive or refill < 1 or refill >= 4503599627370496 or period < 1 or
    capacity * period > 4503599627370496 - refill or stamp > now or
    level > 4503599627370496 or spent > 4503599627370496 then break end

  local drained = (now - stamp) * refill
  level = level - drained
  if level < 0 then level = 0 end
  local limit, charge = capacity * period, cost * period
  local want = level + charge
  if want > limit then
    local free, over = limit - level, want - limit
    if free < 0 then free = 0 end
    return pack('<c8lllllllll', message, now, 0, (free - free % period) / period,
      (over + -over % refill) / refill, (level + -level % refill) / refill, version, capacity,
      refill, period)
  end
  if spent < 4503599627370496 then -- more than can be counted does not drain
    spent = spent - drained
    if spent < 0 then spent = 0 end
  end
  spent = spent + charge
  if spent > 4503599627370496 then spent = 4503599627370496 end
  -- First: a right that is missing shows before anything is written.
  call('PEXPIRE', key, string.format('%d', read('<L', message, 33)), 'GT')
  call('SETRANGE', key, '33', pack('<lll', want, spent, now))
  local free = limit - want
  return pack('<c8lllllllll', message, now, 1, (free - free % period) / period, 0,
    (want + -want % refill) / refill, version, capacity, refill, period)
until true

