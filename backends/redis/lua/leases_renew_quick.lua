-- The short cut of leases_renew.lua, for a lease that is known by its place, while none has lapsed,
-- and that ends last from now on: same names. The time to live is renewed as in
-- leases_acquire_quick.lua.
repeat
  local message = ARGV[1]
  if #raw < 89 or #raw % 8 ~= 1 or #message ~= 56 then break end
  local unpack, pack = struct.unpack, struct.pack
  local kind, used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest =
    unpack('<Bi8i8i8i8i8i8i8i8i8i8i8', raw)
  local limit, ttl, slot, high, middle, low = unpack('<i8i8i8i8i8i8', message, 9)
  if kind ~= 7 or limit < 1 or limit > 4503599627370496 or ttl < 1000 or ttl > 1099511627776 or
    slot < 1 or slot > slots or high < 0 or high >= 4503599627370496 or middle < 0 or
    middle >= 4503599627370496 or low < 0 or low >= 16777216 or used < 0 or
    used > 4503599627370496 or stamp < 0 or stamp > 4503599627370496 or ahead < 0 or
    ahead > 4503599627370496 or fence < 0 or fence > 4503599627370496 or slots > 4096 or
    first < 1 or first > slots or tail < 1 or tail > slots or free < 0 or free > slots or
    under < 0 or under > slots and under ~= 4097 or earliest < 0 or
    earliest > 4503599627370496 or latest < 0 or latest > 4503599627370496 then break end
  local base = now + ahead
  if base > 4503599627370496 then break end -- word_limit
  if stamp > base + 60000000 then break end -- max_ahead, us
  local at = base
  if stamp > at then at = stamp end
  if at >= earliest then break end

  local place = 64 * slot + 25
  local words = redis.call('GETRANGE', KEYS[1], place, place + 63)
  if #words ~= 64 then break end
  local held, next, old, prev, a, b, c, token = unpack('<i8i8i8i8i8i8i8i8', words)
  local ends = at + ttl
  if a ~= high or b ~= middle or c ~= low or held < 1 or held > 4503599627370496 or old <= at or
    old >= ends or next < 0 or next > 4503599627370496 or prev < 0 or prev > 4503599627370496 or
    token < 0 or token > 4503599627370496 or ends < latest or ends > 4503599627370496 then break end

  local after, inside = tail, false
  if slot ~= tail then
    if next < 1 or next > slots then break end
    if slot == first then
      first = next
    else
      if prev < 1 or prev > slots then break end
      inside = true
    end
    tail = slot
  end
  -- First: a right that is missing shows before anything is written.
  if ends - ends % 500000 ~= latest - latest % 500000 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT')
  end
  redis.call('SETRANGE', KEYS[1], '1', pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots,
    first, tail, free, under, earliest, ends))
  if after == slot then
    redis.call('SETRANGE', KEYS[1], place + 16, pack('<i8', ends))
  else
    if inside then
      redis.call('SETRANGE', KEYS[1], 64 * prev + 33, pack('<i8', next))
      redis.call('SETRANGE', KEYS[1], 64 * next + 49, pack('<i8', prev))
    end
    redis.call('SETRANGE', KEYS[1], 64 * after + 33, pack('<i8', slot))
    redis.call('SETRANGE', KEYS[1], place + 8, pack('<i8i8i8', 0, ends, after))
  end
  local remaining = limit - used
  if remaining < 0 or free == 0 and slots == 4096 then remaining = 0 end -- max_holders
  return pack('<c8i8i8i8i8i8i8i8', message, now, 1, remaining, 0, ends - base, token, ends - ahead)
until true

