-- The short cut of leases_acquire.lua, for a lease that fits among those held, none of which has
-- lapsed, or all, and that ends last: same names. Words are read as unsigned, so that one that is
-- below zero is one that is too large. The time to live is renewed when the last end moves to another
-- half second: a second was added to it.
local message, key, call = ARGV[1], KEYS[1], redis.call
local pack, read, format = struct.pack, struct.unpack, string.format

repeat
  if #message ~= 80 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '88')
  if #raw ~= 89 then break end
  local kind, used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest =
    read('<BLLLLLLLLLLL', raw)
  local limit, weight, ttl, tier, seek, high, middle, low = read('<LLLLLLLL', message, 9)
  if kind ~= 7 or seek ~= 0 or weight < 1 or weight > limit or limit > 4503599627370496 or
    ttl < 1000 or ttl > 1099511627776 or tier > 15 or high >= 4503599627370496 or
    middle >= 4503599627370496 or low >= 16777216 or used > 4503599627370496 or
    ahead > 4503599627370496 or fence > 4503599627370496 or slots > 4096 or first > slots or
    tail > slots or free > slots or under > slots and under ~= 4097 or
    (first == 0) ~= (tail == 0) or earliest > 4503599627370496 or latest > 4503599627370496 then
    break
  end
  local base = now + ahead
  if stamp > base + 60000000 then break end -- max_ahead, us
  local at = base
  if stamp > at then at = stamp end
  local ends = at + ttl
  if ends > 4503599627370496 then break end -- word_limit, and so for stamp and base

  local old, slot, after = latest, 1, 0
  if first == 0 then
    if used ~= 0 or slots ~= 0 then break end
    slots, first, tail, free, under, earliest = 1, 1, 1, 0, 0, ends
  elseif at >= earliest then
    if at < latest then break end
    used, slots, first, tail, free, under, earliest = 0, 1, 1, 1, 0, 0, ends
  else
    if used > limit - weight or ends < latest then break end
    if free == 0 then
      if slots == 4096 then break end -- max_holders
      slots = slots + 1
      slot = slots
    else
      slot = free
      free = under
      if free == 4097 then -- unread
        local offset = 64 * slot + 33
        local word = call('GETRANGE', key, format('%d', offset), format('%d', offset + 7))
        if #word ~= 8 then break end
        free = read('<L', word)
        if free > slots then break end
      end
      under = 0
      if free ~= 0 then under = 4097 end
    end
    after, tail = tail, slot
  end
  if now > fence then fence = now else fence = fence + 1 end
  if fence > 4503599627370496 then break end -- word_limit
  used = used + weight

  -- First: a right that is missing shows before anything is written.
  if ends - ends % 500000 ~= old - old % 500000 then
    local keep = format('%d', read('<L', message, 73))
    if call('PEXPIRE', key, keep, 'GT') == 0 then -- longer, or taken away
      call('PEXPIRE', key, keep, 'NX')
    end
  end
  if after == 0 then -- a place right behind the front
    call('SETRANGE', key, '1', pack('<lllllllllllllllllll', used, at, ahead, fence, slots, first,
      tail, free, under, earliest, ends, weight, 0, ends, 0, high, middle, low, fence))
  else
    call('SETRANGE', key, '1', pack('<lllllllllll', used, at, ahead, fence, slots, first, tail, free,
      under, earliest, ends))
    call('SETRANGE', key, format('%d', 64 * slot + 25), pack('<llllllll', weight, 0, ends, after, high,
      middle, low, fence))
    call('SETRANGE', key, format('%d', 64 * after + 33), pack('<l', slot))
  end
  local remaining = limit - used
  if free == 0 and slots == 4096 then remaining = 0 end -- max_holders
  return pack('<c8lllllllll', message, now, 1, remaining, 0, ends - base, tier, slot, fence,
    ends - ahead)
until true

