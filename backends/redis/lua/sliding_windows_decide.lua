-- Log: the time of a unit, and the search for a window's edge.
local function sliding_windows_search(word, words, base, next, capacity, size, total, newest,
    kept_span, oldest)
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

  -- The units later than `edge`, from a place that is right or has count > total.
  local function locate(count, before, first, edge)
    if count > total then
      count, before, first = 0, 0, 0
      if total > 0 then before = newest end
    end
    local low, high = 0, 0
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
  return unit, locate
end

-- The twin of decide() in src/algorithms/sliding_windows.cpp and of the Log of sliding_windows_log.hpp:
-- same names, same order, with find() and admit() in their place. Windows count from 1 here. Returns
-- status, remaining, retry_after, reset_after and the details. A cost of c writes c words; a larger
-- capacity under a live log moves the log once.
local function sliding_windows_decide(head, table, now, limit, cost, max_wait, longest, spends)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if max_wait < 0 or max_wait > 31622400000000 or longest < 1 or longest > 31622400000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local least, most = 4503599627370496, 0
  longest = 0
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
  if cost > least then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity

  -- Log: what it has dropped, and the capacity that is asked for would have held, is there as
  -- assumed units.
  local stamp, newest, capacity, next, size, dropped, kept_span, places = unpack(head, 1, 8)
  local fresh = capacity == 0
  if fresh then
    stamp, newest, capacity, next, size, dropped, kept_span, places =
      0, 0, most, 0, 0, 0, 0, #table / 2
  elseif capacity > 65536 or next >= capacity or size > capacity or places < 1 or places > 8 or
      kept_span > 31622400000000 or dropped > 0 and size < capacity then
    corrupt()
    return -17, 0, 0, 0 -- Errc::corrupt_state
  end
  local base = 8 + 3 * places
  local ring, total, oldest = capacity, size, 0
  if most > ring then ring = most end

  local unit, locate -- made when they are needed: few requests do
  if ring > capacity and dropped > 0 then
    unit = sliding_windows_search(word, words, base, next, capacity, size, size, newest, kept_span,
      0)
    total, oldest = size + dropped, unit(size - 1)
    if total > ring then total = ring end
    unit, locate = sliding_windows_search(word, words, base, next, capacity, size, total, newest,
      kept_span, oldest)
  end

  local given_up = stamp > now + 60000000 -- max_ahead, us
  local at = now
  if not given_up and stamp > at then at = stamp end

  -- find(): what the request meets, window by window.
  local grant, latest, culprit = at, 0, nil
  if not given_up and cost > 0 and newest > grant then grant = newest end
  local counts, befores, firsts, lefts = {0, 0}, {0, 0}, {0, 0}, {0, 0}
  for k = 1, #table / 2 do
    local window, span = table[2 * k - 1], table[2 * k]
    local count, before, first = 4503599627370496, 0, 0 -- unknown
    if k <= places and not fresh and total == size then
      if k <= 2 then
        count, before, first = head[6 + 3 * k], head[7 + 3 * k], head[8 + 3 * k]
      else
        count, before, first = words(5 + 3 * k, 3)
      end
    end
    local edge = at - span
    if count <= total and count > 0 and first <= edge then -- fewer()
      local high = count - 1
      local slot = next - high
      if slot < 0 then slot = slot + capacity end
      if newest <= edge then
        count, before, first = 0, newest, 0
      elseif high == 1 then
        count, before, first = 1, first, newest
      elseif high >= 2 and high <= size and capacity - slot >= 4 then
        local a, b, c, d = words(base + slot, 4)
        if a > edge then
          count, before, first = high, first, a
        elseif b > edge then
          count, before, first = high - 1, a, b
        elseif c > edge and high > 2 then
          count, before, first = high - 2, b, c
        elseif d > edge and high > 3 then
          count, before, first = high - 3, c, d
        end
      end
    end
    if count > total or count > 0 and first <= edge or before > edge and count < total then
      if not locate then
        unit, locate = sliding_windows_search(word, words, base, next, capacity, size, total,
          newest, kept_span, oldest)
      end
      count, before, first = locate(count, before, first, edge)
    end
    counts[k], befores[k], firsts[k] = count, before, first
    local left = window - count
    if left < 0 then left = 0 end
    if given_up then
      if left < cost then left = cost end
    elseif cost > 0 and count + cost > window then
      local room = first
      if window - cost ~= count - 1 then
        unit = unit or sliding_windows_search(word, words, base, next, capacity, size, total,
          newest, kept_span, oldest)
        room = unit(window - cost)
      end
      room = room + span
      if room > latest then latest, culprit = room, k end
    end
    lefts[k] = left
  end
  if latest > grant then grant = latest end

  local wait = 0
  if grant ~= at then wait = grant - now end
  local allowed = wait <= max_wait and grant <= 4503599627370496 -- word_limit
  local taken = 0
  if allowed and spends then taken = cost end
  if taken > 0 then
    local grows = ring > capacity
    local write
    if grows or given_up or next + cost > ring then
      if not locate then
        unit, locate = sliding_windows_search(word, words, base, next, capacity, size, total,
          newest, kept_span, oldest)
      end
      write = function(slot, count, value)
        if count == 0 then return end
        if slot < 0 then slot = slot + ring end
        local packed, some = struct.pack('<i8', value), ring - slot
        if some > count then some = count end
        put(base + slot, string.rep(packed, some))
        if count > some then put(base, string.rep(packed, count - some)) end
      end
    end
    if grows then -- grow()
      if size > next then
        put(base + next,
          bytes(base + capacity, ring - capacity) .. bytes(base + next, capacity - next))
      end
      local interval, age = 0, size
      while age < total do
        local last = total
        if interval < 23 and age + capacity < last then last = age + capacity end
        write(next - last, last - age, unit(age))
        age, interval = last, interval + 1
      end
    end
    if given_up then
      local later = locate(4503599627370496, 0, 0, at)
      write(next - later, later, at)
    end
    local over = total + cost - ring
    if over < 0 then over = 0 end
    local after = next + cost
    if after >= ring then after = after - ring end
    local left_out = dropped - (total - size) + over
    if left_out > 2251799813685248 then left_out = 2251799813685248 end
    local new_span = longest
    if not fresh and kept_span < new_span then new_span = kept_span end
    local front = struct.pack('<i8i8i8i8i8i8i8i8', at, grant, ring, after, total + cost - over,
      left_out, new_span, places)
    local known = 0
    if not grows and not given_up then
      known = #table / 2
      if known > places then known = places end
      for k = 1, known do -- moved()
        local count, before, first = counts[k] + cost, befores[k], firsts[k]
        if count > ring then
          local kept = ring - cost
          count, before, first = ring, 0, grant
          if kept > 0 then
            unit = unit or sliding_windows_search(word, words, base, next, capacity, size, total,
              newest, kept_span, oldest)
            first = unit(kept - 1)
          end
        elseif counts[k] == 0 then
          first = grant
        end
        front = front .. struct.pack('<i8i8i8', count, before, first)
      end
    end
    if known < places then
      front = front .. string.rep(struct.pack('<i8', 4503599627370496), 3 * (places - known))
    end
    if fresh then
      put(0, front .. string.rep(struct.pack('<i8', grant), cost))
    else
      put(0, front)
      if write then
        write(next, cost, grant)
      else
        put(base + next, string.rep(struct.pack('<i8', grant), cost))
      end
    end
  end

  local part, details = 1, ''
  for k = 1, #table / 2 do
    lefts[k] = lefts[k] - taken
    if lefts[k] < 0 then lefts[k] = 0 end
    if lefts[k] < lefts[part] then part = k end
    details = details .. struct.pack('<i8', lefts[k])
  end
  local told = part
  if not allowed and culprit then told = culprit end
  if given_up and newest > at then newest = at end
  if taken > 0 then newest = grant end
  local remaining, clear = lefts[part], newest + longest - now
  if newest > at then remaining = 0 end -- nothing overtakes what is reserved
  if total == 0 and taken == 0 or clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  local status = 1
  if not allowed then
    status, wait = 0, wait - max_wait
    if wait < 1 then wait = 1 end
    if wait > 4503599627370496 then wait = 4503599627370496 end
  end
  return status, remaining, wait, clear, struct.pack('<i8', told - 1) .. details
end

