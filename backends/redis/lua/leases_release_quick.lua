-- The short cut of leases_release.lua, for a lease that is known by its place while none has lapsed:
-- same names. Words are read as in leases_acquire_quick.lua. No state is needed for longer when a
-- lease has gone, so the time to live stays.
local message, key, call = ARGV[1], KEYS[1], redis.call
local pack, read, format = struct.pack, struct.unpack, string.format

repeat
  if #message ~= 56 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '88')
  if #raw ~= 89 then break end
  local kind, used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest =
    read('<BLLLLLLLLLLL', raw)
  local limit, slot, high, middle, low = read('<LLLLL', message, 9)
  if kind ~= 7 or limit < 1 or limit > 4503599627370496 or slot < 1 or slot > slots or
    high >= 4503599627370496 or middle >= 4503599627370496 or low >= 16777216 or
    used > 4503599627370496 or ahead > 4503599627370496 or fence > 4503599627370496 or
    slots > 4096 or first < 1 or first > slots or tail < 1 or tail > slots or free > slots or
    under > slots and under ~= 4097 or earliest > 4503599627370496 or
    latest > 4503599627370496 then break end
  local base = now + ahead
  if stamp > base + 60000000 then break end -- max_ahead, us
  local at = base
  if stamp > at then at = stamp end
  if at >= earliest then break end

  local place = 64 * slot + 25
  local offset = format('%d', place)
  local words = call('GETRANGE', key, offset, format('%d', place + 63))
  if #words ~= 64 then break end
  local held, next, ends, prev, a, b, c, token = read('<LLLLLLLL', words)
  if a ~= high or b ~= middle or c ~= low or held < 1 or held > used or ends <= at or
    ends > 4503599627370496 or next > 4503599627370496 or prev > 4503599627370496 or
    token > 4503599627370496 then break end

  if first == tail then
    call('SETRANGE', key, '1', pack('<lllllllllll', 0, at, ahead, fence, 0, 0, 0, 0, 0, 0, 0))
    used, latest = 0, 0
  else
    local inside = false
    if slot == first then
      if next < 1 or next > slots then break end
      first = next
    elseif slot == tail then
      if prev < 1 or prev > slots then break end
      tail = prev
    else
      if next < 1 or next > slots or prev < 1 or prev > slots then break end
      inside = true
    end
    used = used - held
    call('SETRANGE', key, '1', pack('<lllllllllll', used, at, ahead, fence, slots, first, tail, slot,
      free, earliest, latest))
    call('SETRANGE', key, offset, pack('<ll', 0, free))
    if inside then
      call('SETRANGE', key, format('%d', 64 * prev + 33), pack('<l', next))
      call('SETRANGE', key, format('%d', 64 * next + 49), pack('<l', prev))
    end
  end
  local remaining = limit - used
  if remaining < 0 then remaining = 0 end
  local reset_after = latest - base
  if reset_after < 0 then reset_after = 0 end
  return pack('<c8llllll', message, now, 1, remaining, 0, reset_after, 1)
until true

