--@ piece sliding_window_words
-- The limits and spans of the windows, which stand in the message behind the arguments.
  local table_at = position + 8 * Operation.argument_count
  local table_words = (#message - 7 - table_at) / 8
  local table = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * table_words), message, table_at)}
  table[table_words + 1] = nil -- where unpacking ended

--@ piece sliding_window_table
-- The twin of Windows in src/rules/sliding_window_find.hpp in its place in a rule: from the message to `table`,
-- `least`, `most` and `longest`.
--@ use sliding_window_words
  local least, most = word_limit, 0
  longest = 0
  for i = 1, #table, 2 do
    local window, span = table[i], table[i + 1] or 0
    if window < 1 or window > Rule.max_limit or span < 1 or span > Rule.max_span then
      return Errc.invalid_argument
    end
    if window < least then least = window end
    if window > most then most = window end
    if span > longest then longest = span end
  end
  if most == 0 or #table > 2 * Rule.max_windows then return Errc.invalid_argument end

--@ piece sliding_window_log
-- The head of the Log of src/rules/sliding_window_log.hpp in its place in a rule.
  -- Log: what it has dropped, and the capacity that is asked for would have held, is there as
  -- assumed units.
  local stamp, newest, capacity, next, size, dropped, kept_span, layout, since, older, till =
    unpack(head, 1, 11)
  local fresh, asked = capacity == 0, #table / 2
  local places, blocks = layout % 16, (layout - layout % 16) / 16
  if not fresh then
    if capacity > Rule.max_limit or next >= capacity or size > capacity or places < 1 or
      places > Rule.max_windows or
      kept_span > Rule.max_span or older > Rule.max_span or dropped > 0 and size < capacity or
      blocks > 1 or
      blocks == 1 and (head[12] ~= word_limit or head[13] > stamp + Rule.max_span) then
      return Errc.corrupt_state
    end
    fresh = now >= till and (blocks == 0 or now >= head[13])
  end
  if fresh then
    stamp, newest, capacity, next, size, dropped, kept_span, since, older, till, places, blocks =
      0, 0, most, 0, 0, 0, 0, 0, 0, 0, asked, 0
  end
  local base = 11 + 3 * places

--@ piece sliding_window_search
-- Log: the time of a unit, and the search for a window's edge.
local function sliding_window_search(word, words, base, next, capacity, size, total, newest,
    kept_span, since, older, oldest)
  local function ring_before(time)
    local other = time
    if since < other then other = since end
    time, other = time - kept_span, other - older
    if other > time then time = other end
    return time
  end

  local function unit(age)
    if age < size then
      local at = next - 1 - age
      if at < 0 then at = at + capacity end
      return word(base + at)
    end
    local ring = (age - size - (age - size) % capacity) / capacity
    if ring > Rule.max_assumed - 1 then ring = Rule.max_assumed - 1 end
    local time = ring_before(newest)
    if oldest < time then time = oldest end
    for _ = 1, ring do time = ring_before(time) end
    if time < 0 then time = 0 end
    return time
  end

  -- The units later than `edge`, from a place that is right or has count > total. Of fewer() it is
  -- the part that reads the log.
  local function locate(count, before, first, edge)
    if count > total then
      count, before, first = 0, 0, 0
      if total > 0 then before = newest end
    end
    local low, high = 0, 0
    if count > 0 and first <= edge then
      if newest <= edge then return 0, newest, 0 end
      if count == 2 then return 1, first, newest end
      high, before = count - 1, first
      if high > 0 and high <= size then
        local at = next - high
        if at < 0 then at = at + capacity end
        local run, many = 8, 4 -- the kernel looks at four side by side
        if high < run then run = high end
        if capacity - at < run then run = capacity - at end
        if run > many or capacity - at < many then many = run end
        local times = {words(base + at, many)}
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
  return unit, locate, ring_before
end

--@ piece sliding_window_decide
-- The twin of decide() in src/rules/sliding_window.cpp and of the Log of sliding_window_log.hpp:
-- same names, same order, with find() and admit() in their place. Windows count from 1 here. Returns
-- status, remaining, retry_after, reset_after and the output words. `block_span`: how long the key is to be
-- blocked; nil: not at all. A cost of c writes c words; a larger
-- capacity under a live log moves the log once.
  if cost < 0 then return Errc.invalid_cost end
  if cost > limit then return Errc.cost_exceeds_capacity end
  if max_wait < 0 or max_wait > Rule.max_span or longest < 1 or longest > Rule.max_span then
    return Errc.invalid_argument
  end
  local keep = longest
--@ use sliding_window_table
  if cost > least then return Errc.cost_exceeds_capacity end

--@ use sliding_window_search
--@ use sliding_window_log

  local given_up = stamp > now + Rule.max_ahead
  local at = now
  if not given_up and stamp > at then at = stamp end

  local ring, total, oldest = capacity, size, 0
  if most > ring then ring = most end

  local unit, locate -- made when they are needed: few requests do
  if ring > capacity and dropped > 0 then
    unit = sliding_window_search(word, words, base, next, capacity, size, size, newest, kept_span,
      since, older, 0)
    total, oldest = size + dropped, unit(size - 1)
    if total > ring then total = ring end
    unit, locate = sliding_window_search(word, words, base, next, capacity, size, total, newest,
      kept_span, since, older, oldest)
  end

  local stands = 0
  if blocks == 1 and not given_up and head[13] > at then stands = head[13] end

  -- find(): what the request meets, window by window.
  local grant, latest, culprit = at, 0, nil
  if not given_up and newest > grant then grant = newest end
  local counts, befores, firsts, lefts = {0, 0}, {0, 0}, {0, 0}, {0, 0}
  for k = 1, asked do
    local window, span = table[2 * k - 1], table[2 * k]
    local count, before, first = word_limit, 0, 0 -- unknown
    if k <= places and not fresh and total == size then
      if k == 1 then
        count, before, first = head[12], head[13], head[14]
      else
        count, before, first = words(8 + 3 * k, 3)
      end
    end
    local edge = at - span
    if count > total or count > 0 and first <= edge or before > edge and count < total then
      if not locate then
        unit, locate = sliding_window_search(word, words, base, next, capacity, size, total,
          newest, kept_span, since, older, oldest)
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
          newest, kept_span, since, older, oldest)
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
  local allowed = block_span or wait <= max_wait and grant <= word_limit
  local taken = 0
  if allowed and spends then taken = cost end
  local new_newest = newest
  if given_up and newest > at then new_newest = at end
  if taken > 0 then new_newest = grant end
  local block = stands
  if block_span and block_span > 0 then
    local till = at + block_span
    if till > word_limit then till = word_limit end
    if till > block then block = till end
  end
  if taken > 0 or block > stands then
    local grows = ring > capacity
    local write
    if grows or given_up or next + cost > ring then
      if not locate then
        unit, locate = sliding_window_search(word, words, base, next, capacity, size, total,
          newest, kept_span, since, older, oldest)
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
        if interval < Rule.max_assumed - 1 and age + capacity < last then last = age + capacity end
        write(next - last, last - age, unit(age))
        age, interval = last, interval + 1
      end
    end
    if given_up then
      local later = locate(word_limit, 0, 0, at)
      write(next - later, later, at)
    end
    local over = total + cost - ring
    if over < 0 then over = 0 end
    local after = next + cost
    if after >= ring then after = after - ring end
    local left_out = dropped - (total - size) + over
    if left_out > word_limit / 2 then left_out = word_limit / 2 end
    local new_since, new_older, new_layout = since, longest, places
    if not fresh and longest > kept_span then new_since = newest end
    if not fresh and older < new_older then new_older = older end
    if block > 0 then new_layout = places + 16 end
    local new_till = till
    if taken > 0 and grant + keep > till then new_till = grant + keep end
    if new_till > word_limit then new_till = word_limit end
    local front = struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', at, new_newest, ring, after,
      total + cost - over, left_out, longest, new_layout, new_since, new_older, new_till)
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
              newest, kept_span, since, older, oldest)
            first = unit(kept - 1)
          end
        elseif counts[k] == 0 then
          first = grant
        end
        front = front .. struct.pack('<i8i8i8', count, before, first)
      end
    end
    if known < places then
      local unknown, forgotten = struct.pack('<i8', word_limit), 3 * (places - known)
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
  if clear > word_limit then clear = word_limit end
  local status = 1
  if not allowed then
    status, wait = 0, wait - max_wait
    if wait < 1 then wait = 1 end
    if wait > word_limit then wait = word_limit end
  end
  return status, remaining, wait, clear, struct.pack('<i8', told - 1) .. output

--@ piece sliding_window_give
-- The twin of give() in src/rules/sliding_window_refund.cpp and of the Log of
-- sliding_window_log.hpp: same names, same order, with find(), returned() and withdraw() in their
-- place. Windows count from 1 here; a time of -1 is any time. Returns status, remaining, retry_after,
-- reset_after and the output words.
  local longest
--@ use sliding_window_table

--@ use sliding_window_search
--@ use sliding_window_log
  local ring, total, oldest = capacity, size, 0
  if most > ring then ring = most end

  local function search(all)
    return sliding_window_search(word, words, base, next, capacity, size, all, newest, kept_span,
      since, older, oldest)
  end
  local unit, locate, ring_before = search(total)
  if ring > capacity and dropped > 0 then
    total = size + dropped
    if total > ring then total = ring end
    oldest = unit(size - 1)
    unit, locate, ring_before = search(total)
  end

  local at = now
  if stamp > at then at = stamp end
  local counts, lefts = {}, {}
  for k = 1, #table / 2 do
    local count, before, first = word_limit, 0, 0 -- unknown
    if k <= places and not fresh and total == size then
      if k == 1 then
        count, before, first = head[12], head[13], head[14]
      else
        count, before, first = words(8 + 3 * k, 3)
      end
    end
    local edge = at - table[2 * k]
    counts[k] = locate(count, before, first, edge)
    lefts[k] = table[2 * k - 1] - counts[k]
    if lefts[k] < 0 then lefts[k] = 0 end
  end

  local given = 0
  if time == -1 then
    given = size + dropped
    if units < given then given = units end
  elseif units > 0 and newest == time then
    given = locate(word_limit, 0, 0, time - 1)
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
    if ring_before(newest) < old then old = ring_before(newest) end
    if old < 0 then old = 0 end
    new_size = new_size + back
    if after < 0 then after = after + capacity end
    newest = 0
    if new_size > 0 then newest = old end
    if given < size then newest = unit(given) end
    if newest < since then since = newest end
    local front = struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', stamp, newest, capacity, after, new_size,
      dropped - back, kept_span, layout, since, older, till)
    local unknown, forgotten = struct.pack('<i8', word_limit), 3 * places
    if blocks == 1 then
      front, forgotten = front .. unknown .. struct.pack('<i8', head[13]), forgotten - 2
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

  local remaining, output = lefts[1], struct.pack('<i8', told)
  for k = 1, #table / 2 do
    if lefts[k] < remaining then remaining = lefts[k] end
    output = output .. struct.pack('<i8', lefts[k])
  end
  local block = 0
  if blocks == 1 and head[13] > at then block = head[13] end
  if newest > at or block > at then remaining = 0 end
  local clear = newest + longest - now
  if total == 0 then clear = 0 end
  if block - now > clear then clear = block - now end
  if clear < 0 then clear = 0 end
  if clear > word_limit then clear = word_limit end
  return 1, remaining, 0, clear, output

--@ operation sliding_window_acquire(head[14] | limit, cost, max_wait, longest)
-- The twin of SlidingWindowRule::acquire.
  local spends, block_span = true, nil
--@ use sliding_window_decide

--@ operation sliding_window_peek(head[14] | limit, cost, max_wait, longest)
-- The twin of SlidingWindowRule::peek.
  local spends, block_span = false, nil
--@ use sliding_window_decide

--@ operation sliding_window_block(head[14] | limit, span, longest)
-- The twin of SlidingWindowRule::block.
  if span < 0 or span > Rule.max_span then return Errc.invalid_argument end
  local cost, max_wait, spends, block_span = 0, 0, false, span
--@ use sliding_window_decide

--@ operation sliding_window_refund(head[14] | limit, units, time, keep)
-- The twin of SlidingWindowRule::refund.
  if units < 0 or units > word_limit then return Errc.invalid_cost end
  if time < 0 or time > word_limit or keep < 0 or keep > word_limit then
    return Errc.invalid_argument
  end
--@ use sliding_window_give

--@ operation sliding_window_reward(head[14] | limit, units, longest)
-- The twin of SlidingWindowRule::reward.
  if units < 0 or units > word_limit then return Errc.invalid_cost end
  if longest < 1 or longest > Rule.max_span then return Errc.invalid_argument end
  local time = -1 -- any
--@ use sliding_window_give

--@ operation sliding_window_reset(head[14] | limit)
-- The twin of SlidingWindowRule::reset: same names, same order.
  local longest
--@ use sliding_window_table
  local output = struct.pack('<i8', 0)
  for i = 1, #table, 2 do output = output .. struct.pack('<i8', table[i]) end
  put(0, string.rep('\0', 88))
  return 1, least, 0, 0, output
