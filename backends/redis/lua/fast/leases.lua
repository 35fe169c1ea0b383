-- Fast paths of leases: no functions, no tables of words, few reads. Words are read as unsigned, so that one that is
-- below zero is one that is too large. A fast path that returns nothing has changed nothing: the rule decides.

--@ piece leases_front
-- The words of the front, and the time that the leases live by.
local pack, read, format = struct.pack, struct.unpack, string.format
if #seen < 89 then return end
local kind, used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest =
  read('<BLLLLLLLLLLL', seen)
if kind ~= Operation.kind or used > word_limit or ahead > word_limit or fence > word_limit or
  slots > Rule.max_holders or first > slots or tail > slots or free > slots or
  under > slots and under ~= Rule.unread or (first == 0) ~= (tail == 0) or
  earliest > word_limit or latest > word_limit then
  return
end
local base = now + ahead
if stamp > base + Rule.max_ahead then return end
local at = base
if stamp > at then at = stamp end

--@ fast leases_acquire
-- For a lease that ends last among those held, none of which has lapsed, or all; and for one that is refused until the
-- first of those held ends. The time to live is renewed when the last end moves to another half second: a second was
-- added to it.
--@ use leases_front
local limit, weight, ttl, tier, seek, high, middle, low = read('<LLLLLLLL', message, position)
local ends = at + ttl
if seek ~= 0 or weight < 1 or weight > limit or limit > word_limit or ttl < Rule.min_ttl or
  ttl > Rule.max_ttl or tier > Rule.max_tier or high >= word_limit or middle >= word_limit or
  low >= Rule.block_id or ends > word_limit then -- and so for stamp and base
  return
end

local old, slot, after = latest, 1, 0
if first == 0 then
  if used ~= 0 or slots ~= 0 then return end
  slots, first, tail, free, under, earliest = 1, 1, 1, 0, 0, ends
elseif at >= earliest then
  if at < latest then return end
  used, slots, first, tail, free, under, earliest = 0, 1, 1, 1, 0, 0, ends
elseif used > limit - weight then
  if free == 0 and slots == Rule.max_holders then return end
  local raw = redis.call('GETRANGE', key, format('%d', 64 * first + 25), format('%d', 64 * first + 48))
  if #raw ~= 24 then return end
  local held, next, till = read('<LLL', raw)
  local last = till
  if first ~= tail then -- the kernel looks at who follows
    if next < 1 or next > slots then return end
    raw = redis.call('GETRANGE', key, format('%d', 64 * next + 25), format('%d', 64 * next + 48))
    if #raw ~= 24 then return end
    local weight_behind, next_behind
    weight_behind, next_behind, last = read('<LLL', raw)
    if weight_behind > word_limit or next_behind > word_limit or last > word_limit then return end
    if next ~= tail then
      raw = redis.call('GETRANGE', key, format('%d', 64 * tail + 41), format('%d', 64 * tail + 48))
      if #raw ~= 8 then return end
      last = read('<L', raw)
    end
  end
  if held < 1 or held > used or (held == used) ~= (first == tail) or next > word_limit or
    till <= at or till > word_limit or last <= at or last > word_limit or
    used - held > limit - weight then
    return
  end
  local remaining = limit - used
  if remaining < 0 then remaining = 0 end
  return 0, remaining, till - base, last - base, pack('<llll', tier, 0, 0, 0)
else
  if ends < latest then return end
  if free == 0 then
    if slots == Rule.max_holders then return end
    slots = slots + 1
    slot = slots
  else
    slot, free = free, under
    if free == Rule.unread then
      local raw = redis.call('GETRANGE', key, format('%d', 64 * slot + 33), format('%d', 64 * slot + 40))
      if #raw ~= 8 then return end
      free = read('<L', raw)
      if free > slots then return end
    end
    under = 0
    if free ~= 0 then under = Rule.unread end
  end
  after, tail = tail, slot
end
if now > fence then fence = now else fence = fence + 1 end
if fence > word_limit then return end
used = used + weight

local renews = ends - ends % 500000 ~= old - old % 500000
local front = pack('<lllllllllll', used, at, ahead, fence, slots, first, tail, free, under, earliest, ends)
local place = pack('<llllllll', weight, 0, ends, after, high, middle, low, fence)
local rest
if after == 0 then -- a place right behind the front
  front = front .. place
else
  rest = {64 * slot + 25, place, 64 * after + 33, pack('<l', slot)}
end
local remaining = limit - used
if free == 0 and slots == Rule.max_holders then remaining = 0 end
return 1, remaining, 0, ends - base, pack('<llll', tier, slot, fence, ends - ahead), front, renews, rest

--@ piece leases_held
-- The words of the lease that is known by its place, while none has lapsed.
if limit < 1 or limit > word_limit or slot < 1 or slot > slots or high >= word_limit or
  middle >= word_limit or low >= Rule.block_id or first < 1 or at >= earliest then
  return
end
local raw = redis.call('GETRANGE', key, format('%d', 64 * slot + 25), format('%d', 64 * slot + 88))
if #raw ~= 64 then return end
local held, next, till, prev, a, b, c, token = read('<LLLLLLLL', raw)
if a ~= high or b ~= middle or c ~= low or held < 1 or till <= at or next > word_limit or prev > word_limit or
  token > word_limit then
  return
end

--@ fast leases_release
-- For a lease that is known by its place while none has lapsed. No state is needed for longer when a lease has gone,
-- so the time to live stays.
--@ use leases_front
local limit, slot, high, middle, low = read('<LLLLL', message, position)
--@ use leases_held
if held > used or till > word_limit then return end

local front, rest
if first == tail then
  used, slots, latest = 0, 0, 0
  front = pack('<lllllllllll', 0, at, ahead, fence, 0, 0, 0, 0, 0, 0, 0)
else
  local links -- between its neighbours
  if slot == first then
    if next < 1 or next > slots then return end
    first = next
  elseif slot == tail then
    if prev < 1 or prev > slots then return end
    tail = prev
  else
    if next < 1 or next > slots or prev < 1 or prev > slots then return end
    links = true
  end
  used = used - held
  front = pack('<lllllllllll', used, at, ahead, fence, slots, first, tail, slot, free, earliest, latest)
  rest = {64 * slot + 25, pack('<ll', 0, free)}
  if links then
    rest[3], rest[4], rest[5], rest[6] =
      64 * prev + 33, pack('<l', next), 64 * next + 49, pack('<l', prev)
  end
end
local remaining, reset_after = limit - used, latest - base
if remaining < 0 then remaining = 0 end
if reset_after < 0 then reset_after = 0 end
return 1, remaining, 0, reset_after, pack('<l', 1), front, false, rest

--@ fast leases_renew
-- For a lease that is known by its place, while none has lapsed, and that ends last from now on. The time to live is
-- renewed as by leases_acquire.
--@ use leases_front
local limit, ttl, slot, high, middle, low = read('<LLLLLL', message, position)
if ttl < Rule.min_ttl or ttl > Rule.max_ttl then return end
--@ use leases_held
local ends = at + ttl
if held > word_limit or till >= ends or ends < latest or ends > word_limit then return end

local after, links = tail, false
if slot ~= tail then
  if next < 1 or next > slots then return end
  if slot == first then
    first = next
  else
    if prev < 1 or prev > slots then return end
    links = true
  end
  tail = slot
end
local renews = ends - ends % 500000 ~= latest - latest % 500000
local front = pack('<lllllllllll', used, at, ahead, fence, slots, first, tail, free, under, earliest, ends)
local rest
if after == slot then
  rest = {64 * slot + 41, pack('<l', ends)}
else
  rest = {64 * after + 33, pack('<l', slot), 64 * slot + 33, pack('<lll', 0, ends, after)}
  if links then
    rest[5], rest[6], rest[7], rest[8] =
      64 * prev + 33, pack('<l', next), 64 * next + 49, pack('<l', prev)
  end
end
local remaining = limit - used
if remaining < 0 or free == 0 and slots == Rule.max_holders then remaining = 0 end
return 1, remaining, 0, ends - base, pack('<ll', token, ends - ahead), front, renews, rest
