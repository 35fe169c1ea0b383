-- The twin of give() in src/algorithms/sliding_windows_give_back.cpp and of the Log of
-- sliding_windows_log.hpp: same names, same order, with find(), returned() and withdraw() in their
-- place. Windows count from 1 here; a time of -1 is any time. Returns status, remaining, retry_after,
-- reset_after and the details.
local function sliding_windows_give(head, table, now, units, time)
  local least, most, longest = 4503599627370496, 0, 0
  for i = 1, #table, 2 do
    local window, span = table[i], table[i + 1] or 0
    if window < 1 or window > 65536 or span < 1 or span > 31622400000000 then
      return -38, 0, 0, 0 -- Errc::invalid_argument
    end
    if window < least then least = window end
    if window > most then most = window end
    if span > longest then longest = span end
  end
  if most == 0 or #table > 16 then return -38, 0, 0, 0 end -- Errc::invalid_argument

  -- Log: what it has dropped, and the capacity that is asked for would have held, is there as
  -- assumed units.
  local stamp, newest, capacity, next, size, dropped, kept_span, layout = unpack(head, 1, 8)
  local fresh = capacity == 0
  local places, stored = layout % 16, (layout - layout % 16) / 16 % 16
  local kept = (layout - places - 16 * stored) / 256 % 16
  local blocks = (layout - places - 16 * stored - 256 * kept) / 4096
  if fresh then
    stamp, newest, capacity, next, size, dropped, kept_span, places, blocks =
      0, 0, most, 0, 0, 0, 0, #table / 2, 0
  elseif capacity > 65536 or next >= capacity or size > capacity or places < 1 or places > 8 or
      stored < 1 or stored > 8 or kept > 8 or kept_span > 31622400000000 or
      dropped > 0 and size < capacity or blocks > 1 or
      blocks == 1 and (head[9] ~= 4503599627370496 or head[10] > stamp + 31622400000000) then
    corrupt()
    return -17, 0, 0, 0 -- Errc::corrupt_state
  end
  local base = 8 + 5 * places
  local ring, total, oldest = capacity, size, 0
  if most > ring then ring = most end

  local function unit(age)
    if age < size then
      local at = next - 1 - age
      if at < 0 then at = at + capacity end
      return word(base + at)
    end
    local interval = (age - size - (age - size) % capacity) / capacity
    if interval > 23 then interval = 23 end -- max_assumed - 1
    local time, other = oldest - interval * kept_span, newest - (interval + 1) * kept_span
    if other < time then time = other end
    if time < 0 then time = 0 end
    return time
  end

  if ring > capacity and dropped > 0 then
    total = size + dropped
    if total > ring then total = ring end
    oldest = unit(size - 1)
  end

  -- The units later than `edge`, from a place that is right or has count > total.
  local function locate(count, before, first, edge)
    if count > total then
      count, before, first = 0, 0, 0
      if total > 0 then before = newest end
    end
    local low, high = 0, 0
    if count > 0 and first <= edge then -- fewer()
      if newest <= edge then return 0, newest, 0 end
      if count == 2 then return 1, first, newest end
      local slot = next - count + 1
      if slot < 0 then slot = slot + capacity end
      if count >= 3 and count - 1 <= size and capacity - slot >= 4 then
        local a, b, c, d = words(base + slot, 4)
        if a > edge then return count - 1, first, a end
        if b > edge then return count - 2, a, b end
        if c > edge and count > 3 then return count - 3, b, c end
        if d > edge and count > 4 then return count - 4, c, d end
      end
    end
    if count > 0 and first <= edge then
      high, before = count - 1, first
      if high > 0 and high <= size then
        local at = next - high
        if at < 0 then at = at + capacity end
        local run = 8
        if high < run then run = high end
        if capacity - at < run then run = capacity - at end
        local times = {words(base + at, run)}
        for i = 1, run do
          if times[i] > edge then return high, before, times[i] end
          before = times[i]
          high = high - 1
        end
      end
    elseif before > edge and count < total then
      low = count
      local step = 1
      while low + step <= total and unit(low + step - 1) > edge do
        low = low + step
        step = step * 2
      end
      high = low + step - 1
      if high > total then high = total end
    else
      return count, before, first
    end
    while low < high do
      local middle = (low + high - (low + high) % 2) / 2
      if unit(middle) > edge then low = middle + 1 else high = middle end
    end
    before, first = 0, 0
    if low < total then before = unit(low) end
    if low > 0 then first = unit(low - 1) end
    return low, before, first
  end

  local at = now
  if stamp > at then at = stamp end
  local counts, lefts = {}, {}
  for k = 1, #table / 2 do
    local count, before, first = 4503599627370496, 0, 0 -- unknown
    if k <= places and not fresh and total == size then
      if k <= 2 then
        count, before, first = head[6 + 3 * k], head[7 + 3 * k], head[8 + 3 * k]
      else
        count, before, first = words(5 + 3 * k, 3)
      end
    end
    counts[k] = locate(count, before, first, at - table[2 * k])
    lefts[k] = table[2 * k - 1] - counts[k]
    if lefts[k] < 0 then lefts[k] = 0 end
  end

  local given = 0
  if time == -1 then
    given = size + dropped
    if units < given then given = units end
  elseif units > 0 and newest == time then
    given = locate(4503599627370496, 0, 0, time - 1)
    if units < given then given = units end
    if size < given then given = size end
  end
  local told = given
  if time == -1 then
    local held = 0
    for k = 1, #table / 2 do
      if counts[k] > held then held = counts[k] end
    end
    if held < told then told = held end
  end
  if given > 0 then
    -- withdraw(), with returned() first.
    local back, old = given, unit(size - 1)
    if size < back then
      dropped, back = dropped - (back - size), size
    end
    local new_size, after = size - back, next - back
    if dropped < back then back = dropped end
    if newest - kept_span < old then old = newest - kept_span end
    if old < 0 then old = 0 end
    new_size = new_size + back
    if after < 0 then after = after + capacity end
    newest = 0
    if new_size > 0 then newest = old end
    if given < size then newest = unit(given) end
    local front = struct.pack('<i8i8i8i8i8i8i8i8', stamp, newest, capacity, after, new_size,
      dropped - back, kept_span, layout)
    local unknown, forgotten = struct.pack('<i8', 4503599627370496), 3 * places
    if blocks == 1 then
      front, forgotten = front .. unknown .. struct.pack('<i8', head[10]), forgotten - 2
    end
    put(0, front .. string.rep(unknown, forgotten))
    if back > 0 then
      local slot, packed = after - new_size, struct.pack('<i8', old)
      if slot < 0 then slot = slot + capacity end
      local some = capacity - slot
      if some > back then some = back end
      put(base + slot, string.rep(packed, some))
      if back > some then put(base, string.rep(packed, back - some)) end
    end
    local held_all = new_size + dropped - back
    if held_all > ring then held_all = ring end
    for k = 1, #table / 2 do
      local within = counts[k] - given
      if within < 0 then within = 0 end
      if old > at - table[2 * k] then within = within + back end
      if within > held_all then within = held_all end
      lefts[k] = table[2 * k - 1] - within
      if lefts[k] < 0 then lefts[k] = 0 end
    end
  end

  local remaining, details = lefts[1], struct.pack('<i8', told)
  for k = 1, #table / 2 do
    if lefts[k] < remaining then remaining = lefts[k] end
    details = details .. struct.pack('<i8', lefts[k])
  end
  local block = 0
  if blocks == 1 and head[10] > at then block = head[10] end
  if newest > at or block > at then remaining = 0 end
  local clear = newest + longest - now
  if total == 0 then clear = 0 end
  if block - now > clear then clear = block - now end
  if clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  return 1, remaining, 0, clear, details
end

