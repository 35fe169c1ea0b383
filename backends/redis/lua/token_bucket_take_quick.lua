-- The short cut of token_bucket_take.lua, for a bucket that is known, whose stamp is not ahead of the
-- clock, and a cost that is not zero: same names. The words of the state are read as unsigned, so that
-- one that is below zero is one that is too large.
repeat
  local message, raw = ARGV[1], redis.pcall('GET', KEYS[1])
  if not raw or #raw ~= 17 then break end
  local pack, read = struct.pack, struct.unpack
  local kind, level, stamp = read('<BLL', raw)
  local capacity, refill, period, full_after, cost = read('<lllll', message, 9)
  if kind ~= 1 or level > 4503599627370496 or stamp > now or cost < 1 or cost > capacity then break end

  local limit = capacity * period
  if level > limit then level = limit end
  local elapsed = now - stamp
  if elapsed >= full_after then level = 0 else level = level - elapsed * refill end
  if level < 0 then level = 0 end
  local want = level + cost * period
  if want > limit then
    local free, over = limit - level, want - limit
    return pack('<c8lllll', message, now, 0, (free - free % period) / period,
      (over + -over % refill) / refill, (level + -level % refill) / refill)
  end
  redis.call('PSETEX', KEYS[1], string.sub(message, 49), pack('<Bll', 1, want, now))
  local free = limit - want
  return pack('<c8lllll', message, now, 1, (free - free % period) / period, 0,
    (want + -want % refill) / refill)
until true

