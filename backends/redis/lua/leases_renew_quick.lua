-- The short cut of leases_renew.lua, for a lease that is known by its place, while none has lapsed,
-- and that ends last from now on: same names. Words are read, and the time to live is renewed, as in
-- leases_acquire_quick.lua.
local message, key, call = ARGV[1], KEYS[1], redis.call
local pack, read, format = struct.pack, struct.unpack, string.format

repeat
  if #message ~= 64 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '88')
  if #raw ~= 89 then break end
  local kind, used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest =
    read('<BLLLLLLLLLLL', raw)
  local limit, ttl, slot, high, middle, low = read('<LLLLLL', message, 9)
  if kind ~= 7 or limit < 1 or limit > 4503599627370496 or ttl < 1000 or ttl > 1099511627776 or
    slot < 1 or slot > slots or high >= 4503599627370496 or middle >= 4503599627370496 or
    low >= 16777216 or used > 4503599627370496 or ahead > 4503599627370496 or
    fence > 4503599627370496 or slots > 4096 or first < 1 or first > slots or tail < 1 or
    tail > slots or free > slots or under > slots and under ~= 4097 or
    earliest > 4503599627370496 or latest > 4503599627370496 then break end
  local base = now + ahead
  if stamp > base + 60000000 then break end -- max_ahead, us
  local at = base
  if stamp > at then at = stamp end
  if at >= earliest then break end

  local place = 64 * slot + 25
  local words = call('GETRANGE', key, format('%d', place), format('%d', place + 63))
  if #words ~= 64 then break end
  local held, next, old, prev, a, b, c, token = read('<LLLLLLLL', words)
  local ends = at + ttl
  if a ~= high or b ~= middle or c ~= low or held < 1 or held > 4503599627370496 or old <= at or
    old >= ends or next > 4503599627370496 or prev > 4503599627370496 or
    token > 4503599627370496 or ends < latest or ends > 4503599627370496 then break end

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
    local keep = format('%d', read('<L', message, 57))
    if call('PEXPIRE', key, keep, 'GT') == 0 then -- longer, or taken away
      call('PEXPIRE', key, keep, 'NX')
    end
  end
  call('SETRANGE', key, '1', pack('<lllllllllll', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, ends))
  if after == slot then
    call('SETRANGE', key, format('%d', place + 16), pack('<l', ends))
  else
    if inside then
      call('SETRANGE', key, format('%d', 64 * prev + 33), pack('<l', next))
      call('SETRANGE', key, format('%d', 64 * next + 49), pack('<l', prev))
    end
    call('SETRANGE', key, format('%d', 64 * after + 33), pack('<l', slot))
    call('SETRANGE', key, format('%d', place + 8), pack('<lll', 0, ends, after))
  end
  local remaining = limit - used
  if remaining < 0 or free == 0 and slots == 4096 then remaining = 0 end -- max_holders
  return pack('<c8lllllll', message, now, 1, remaining, 0, ends - base, token, ends - ahead)
until true

