-- The short cut of leases_acquire.lua, for a lease that fits among those held, none of which has
-- lapsed, or all, and that ends last: same names. The time to live is renewed when the last end moves
-- to another half second: a second was added to it.
repeat
  local message = ARGV[1]
  if #raw < 89 or #raw % 8 ~= 1 or #message ~= 72 then break end
  local unpack, pack = struct.unpack, struct.pack
  local kind, used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest =
    unpack('<Bi8i8i8i8i8i8i8i8i8i8i8', raw)
  local limit, weight, ttl, tier, seek, high, middle, low = unpack('<i8i8i8i8i8i8i8i8', message, 9)
  if kind ~= 7 or limit > 4503599627370496 or weight < 1 or ttl < 1000 or ttl > 1099511627776 or
    tier < 0 or tier > 15 or seek ~= 0 or high < 0 or high >= 4503599627370496 or middle < 0 or
    middle >= 4503599627370496 or low < 0 or low >= 16777216 or weight > limit or
    used < 0 or used > 4503599627370496 or stamp < 0 or stamp > 4503599627370496 or ahead < 0 or
    ahead > 4503599627370496 or fence < 0 or fence > 4503599627370496 or slots < 0 or
    slots > 4096 or first < 0 or first > slots or tail < 0 or tail > slots or free < 0 or
    free > slots or under < 0 or under > slots and under ~= 4097 or
    (first == 0) ~= (tail == 0) or earliest < 0 or earliest > 4503599627370496 or latest < 0 or
    latest > 4503599627370496 then break end
  local base = now + ahead
  if base > 4503599627370496 then break end -- word_limit
  if stamp > base + 60000000 then break end -- max_ahead, us
  local at = base
  if stamp > at then at = stamp end
  local ends = at + ttl
  if ends > 4503599627370496 then break end -- word_limit

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
        local at = 64 * slot + 33
        local word = redis.call('GETRANGE', KEYS[1], at, at + 7)
        if #word ~= 8 then break end
        free = unpack('<i8', word)
        if free < 0 or free > slots then break end
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
    redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT')
  end
  if after == 0 then -- a place right behind the front
    redis.call('SETRANGE', KEYS[1], '1', pack('<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8', used, at,
      ahead, fence, slots, first, tail, free, under, earliest, ends, weight, 0, ends, 0, high,
      middle, low, fence))
  else
    redis.call('SETRANGE', KEYS[1], '1', pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence,
      slots, first, tail, free, under, earliest, ends))
    redis.call('SETRANGE', KEYS[1], 64 * slot + 25,
      pack('<i8i8i8i8i8i8i8i8', weight, 0, ends, after, high, middle, low, fence))
    redis.call('SETRANGE', KEYS[1], 64 * after + 33, pack('<i8', slot))
  end
  local remaining = limit - used
  if free == 0 and slots == 4096 then remaining = 0 end -- max_holders
  return pack('<c8i8i8i8i8i8i8i8i8i8', message, now, 1, remaining, 0, ends - base, tier, slot,
    fence, ends - ahead)
until true

