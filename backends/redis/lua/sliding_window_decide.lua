-- The twin of decide() in src/rules/sliding_window.cpp and of the Log of sliding_window_log.hpp:
-- same names, same order, with find() and admit() in their place. Windows count from 1 here. Returns
-- status, remaining, retry_after, reset_after and the output words. `block_span`: how long the key is to be
-- blocked; nil: not at all. A cost of c writes c words; a larger
-- capacity under a live log moves the log once.
local function sliding_window_decide(head, table, now, limit, cost, max_wait, longest, spends,
    block_span)
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if max_wait < 0 or max_wait > 31622400000000 or longest < 1 or longest > 31622400000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED sliding_window_table
  if cost > least then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity

-- SHARED sliding_window_log

  local given_up = stamp > now + 60000000 -- max_ahead, us
  local at = now
  if not given_up and stamp > at then at = stamp end

  local ring, total, oldest = capacity, size, 0
  if most > ring then ring = most end

  local unit, locate -- made when they are needed: few requests do
  if ring > capacity and dropped > 0 then
    unit = sliding_window_search(word, words, base, next, capacity, size, size, newest, kept_span,
      0)
    total, oldest = size + dropped, unit(size - 1)
    if total > ring then total = ring end
    unit, locate = sliding_window_search(word, words, base, next, capacity, size, total, newest,
      kept_span, oldest)
  end

  local stands = 0
  if blocks == 1 and not given_up and head[10] > at then stands = head[10] end

  -- find(): what the request meets, window by window.
  local grant, latest, culprit = at, 0, nil
  if not given_up and newest > grant then grant = newest end
  local counts, befores, firsts, lefts = {0, 0}, {0, 0}, {0, 0}, {0, 0}
  for k = 1, asked do
    local window, span = table[2 * k - 1], table[2 * k]
    local count, before, first = 4503599627370496, 0, 0 -- unknown
    if k <= places and not fresh and total == size then
      if k == 1 then
        count, before, first = head[9], head[10], head[11]
      else
        count, before, first = words(5 + 3 * k, 3)
      end
    end
    local edge = at - span
-- SHARED sliding_window_fewer
    if count > total or count > 0 and first <= edge or before > edge and count < total then
      if not locate then
        unit, locate = sliding_window_search(word, words, base, next, capacity, size, total,
          newest, kept_span, oldest)
      end
      count, before, first = locate(count, before, first, edge)
    end
    counts[k], befores[k], firsts[k] = count, before, first
    local left = window - count
    if left < 0 then left = 0 end
    if given_up then
      if left < cost then left = cost end
    elseif count + cost > window then
      local room = first
      if window - cost ~= count - 1 then
        unit = unit or sliding_window_search(word, words, base, next, capacity, size, total,
          newest, kept_span, oldest)
        room = unit(window - cost)
      end
      room = room + span
      if room > latest then latest, culprit = room, k end
    end
    lefts[k] = left
  end
  if stands > latest then latest, culprit = stands, asked + 1 end
  if latest > grant then grant = latest end

  local wait = 0
  if grant ~= at and not block_span then wait = grant - now end
  local allowed = block_span or wait <= max_wait and grant <= 4503599627370496 -- word_limit
  local taken = 0
  if allowed and spends then taken = cost end
  local new_newest = newest
  if given_up and newest > at then new_newest = at end
  if taken > 0 then new_newest = grant end
  local block = stands
  if block_span and block_span > 0 then
    local till = at + block_span
    if till > 4503599627370496 then till = 4503599627370496 end -- word_limit
    if till > block then block = till end
  end
  if taken > 0 or block > stands then
    local grows = ring > capacity
    local write
    if grows or given_up or next + cost > ring then
      if not locate then
        unit, locate = sliding_window_search(word, words, base, next, capacity, size, total,
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
    local new_layout = places
    if block > 0 then new_layout = places + 16 end
    local front = struct.pack('<i8i8i8i8i8i8i8i8', at, new_newest, ring, after, total + cost - over,
      left_out, new_span, new_layout)
    local known = 0
    if not grows and not given_up and block == 0 then
      known = asked
      if known > places then known = places end
      for k = 1, known do -- moved()
        local count, before, first = counts[k] + cost, befores[k], firsts[k]
        if count > ring then
          local kept = ring - cost
          count, before, first = ring, 0, grant
          if kept > 0 then
            unit = unit or sliding_window_search(word, words, base, next, capacity, size, total,
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
      local unknown, forgotten = struct.pack('<i8', 4503599627370496), 3 * (places - known)
      if block > 0 then
        front, forgotten = front .. unknown .. struct.pack('<i8', block), forgotten - 2
      end
      front = front .. string.rep(unknown, forgotten)
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

  local part, output = 1, ''
  for k = 1, asked do
    lefts[k] = lefts[k] - taken
    if lefts[k] < 0 then lefts[k] = 0 end
    if lefts[k] < lefts[part] then part = k end
    output = output .. struct.pack('<i8', lefts[k])
  end
  local told = part
  if not allowed and culprit then told = culprit end
  local remaining, clear = lefts[part], new_newest + longest - now
  if new_newest > at or block > at then remaining = 0 end -- nothing overtakes what is reserved
  if total == 0 and taken == 0 then clear = 0 end
  if block - now > clear then clear = block - now end
  if clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  local status = 1
  if not allowed then
    status, wait = 0, wait - max_wait
    if wait < 1 then wait = 1 end
    if wait > 4503599627370496 then wait = 4503599627370496 end
  end
  return status, remaining, wait, clear, struct.pack('<i8', told - 1) .. output
end

