--@ piece sliding_window_words
-- The limits and spans of the windows, which stand in the message behind the arguments.
  local table_at = position + 8 * Operation.argument_count
  local table_words = (#message - 7 - table_at) / 8
  local table = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * table_words), message, table_at)}
  table[table_words + 1] = nil -- where unpacking ended

--@ piece sliding_window_table
-- The twin of Windows in src/rules/sliding_window_log.hpp in its place in a rule: from the message to `table`,
-- `count`, `least`, `most` and `longest`.
--@ use sliding_window_words
  local least, most, count = word_limit, 0, #table / 2
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
  if most == 0 or count > Rule.max_windows then return Errc.invalid_argument end

--@ piece sliding_window_log
-- The twin of Log in src/rules/sliding_window_log.hpp in its place in a rule: the head, the windows from the shortest
-- to the longest in `order`, and entry(), which reads 64 entries at once.
  local order = {}
  for k = 1, count do
    local r = k
    while r > 1 and table[2 * order[r - 1]] > table[2 * k] do
      order[r] = order[r - 1]
      r = r - 1
    end
    order[r] = k
  end
  local stamp, newest, capacity, next, size, sequence, till, blocked, places, kept_span, since, older, top =
    unpack(head, 1, 13)
  local fresh = capacity == 0
  if not fresh then
    if capacity > Rule.max_entries or next >= capacity or size > capacity or sequence <= size or places < 1 or
      places > Rule.max_windows or kept_span > Rule.max_span or older > Rule.max_span or top < 1 or
      top > Rule.max_limit or blocked > stamp + Rule.max_span then
      return Errc.corrupt_state
    end
    fresh = now >= till and now >= blocked
  end
  if fresh then
    stamp, newest, capacity, next, size, sequence, till, blocked, places, kept_span, since, older, top =
      0, 0, Rule.first_entries, 0, 0, 1, 0, 0, count, 0, 0, 0, 0
    if most < capacity then capacity = most end
  end
  local base, oldest = 13 + 5 * places, sequence - size
  local first = oldest -- the oldest that is assumed, if any is
  local assumed, chunk, chunk_at = {}, '', -1

  local function entry(number)
    if number < oldest then return assumed[oldest - number], assumed[number - oldest] end
    local slot = next - (sequence - number)
    if slot < 0 then slot = slot + capacity end
    local within = slot % 64
    if slot - within ~= chunk_at then
      chunk_at = slot - within
      local from = 8 * (base + 2 * chunk_at) + 1
      chunk = redis.call('GETRANGE', key, string.format('%d', from), string.format('%d', from + 1023))
    end
    if #chunk < 16 * within + 16 then return words(base + 2 * slot, 2) end
    local time, units = struct.unpack('<i8i8', chunk, 16 * within + 1)
    if time < 0 or time > word_limit then
      is_corrupt, time = true, 0
    end
    if units < 0 or units > word_limit then
      is_corrupt, units = true, 0
    end
    return time, units
  end

--@ piece sliding_window_assume
-- The twin of Log::assume() in its place in a rule. What is assumed has its times in assumed[1], the newest, assumed[2]
-- and so on, and its units in assumed[-1], assumed[-2].
  local lost = oldest - 1
  if Rule.max_entries - size < lost then lost = Rule.max_entries - size end
  if Rule.max_assumed < lost then lost = Rule.max_assumed end
  if not fresh and longest > kept_span and lost > 0 then
    local function ring_before(time)
      local other = time
      if since < other then other = since end
      time, other = time - kept_span, other - older
      if other > time then time = other end
      return time
    end
    -- lost_before()
    local time, sum, edge = ring_before(stamp), 0, at - longest
    for number = oldest, sequence - 1 do
      local its, units = entry(number)
      if number == oldest and its < time then time = its end
      sum = sum + units
      if sum >= top then
        if ring_before(its) < time then time = ring_before(its) end
        break
      end
    end
    while oldest - first < lost and time > edge do
      local units, before, i = top, ring_before(time), oldest - first + 1
      if i == lost and lost < oldest - 1 and most > units then units = most end
      if time < 0 then time = 0 end
      assumed[i], assumed[-i] = time, units
      first, time = first - 1, before
    end
  end

--@ piece sliding_window_find
-- The twin of find() in src/rules/sliding_window_find.hpp in its place in a rule, with Log::remembered() and
-- Log::locate(). What a window holds is in held[r], and so on, for the r-th of the windows in `order`.
  local held, entries, firsts, firsts_units, edges, lefts = {}, {}, {}, {}, {}, {}
  local last = newest
  if size == 0 and first < oldest then last = assumed[1] end
  local units, number, time, its, known = 0, sequence, 0, 0, word_limit
  for r = 1, count do
    local k = order[r]
    if r <= places and not fresh then
      local a, b, c, d, e
      if r == 1 then
        a, b, c, d, e = unpack(head, 14, 18)
      else
        a, b, c, d, e = words(8 + 5 * r, 5)
      end
      if b ~= 0 then
        if b < oldest or b > sequence or b == sequence and a > 0 then
          is_corrupt = true
        else
          units, number, time, its, known = a, b, c, d, e
        end
      end
    end
    local edge = at - table[2 * k]
    if last <= edge then
      units, number, time, its = 0, sequence, 0, 0
    elseif edge < known or first < oldest then -- no stored place has seen what is assumed
      while number > first and units <= word_limit do
        local before, more = entry(number - 1)
        if before <= edge then break end
        units, number, time, its = units + more, number - 1, before, more
      end
    end
    while number < sequence and time <= edge do
      units, number, time, its = units - its, number + 1, 0, 0
      if number < sequence then time, its = entry(number) end
    end
    if units < 0 or units > word_limit then
      is_corrupt, units = true, 0
    end
    known = edge
    held[r], entries[r], firsts[r], firsts_units[r], edges[r] = units, number, time, its, edge
    lefts[k] = table[2 * k - 1] - units
    if lefts[k] < 0 then lefts[k] = 0 end
  end

--@ piece sliding_window_places
-- The twin of put_place() and forget_places(): to `front`, of `all` places those that are known.
  for r = 1, known_places do
    local edge = edges[r]
    if edge < 0 then edge = 0 end
    front = front .. struct.pack('<i8i8i8i8i8', held[r], entries[r], firsts[r], firsts_units[r], edge)
  end
  front = front .. string.rep('\0', 40 * (all - known_places))

--@ piece sliding_window_decide
-- The twin of decide() in src/rules/sliding_window.cpp: same names, same order, with schedule() and admit() in their
-- place. Windows count from 1 here. Returns status, remaining, retry_after, reset_after and the output words.
-- `block_span`: how long the key is to be blocked; nil: not at all.
  if cost < 0 then return Errc.invalid_cost end
  if cost > limit then return Errc.cost_exceeds_capacity end
  if max_wait < 0 or max_wait > Rule.max_span or longest < 1 or longest > Rule.max_span then
    return Errc.invalid_argument
  end
  local keep = longest
--@ use sliding_window_table
  if cost > least then return Errc.cost_exceeds_capacity end

--@ use sliding_window_log
  local given_up = stamp > now + Rule.max_ahead
  local at, stands = now, 0
  if not given_up then
    if stamp > at then at = stamp end
    if blocked > at then stands = blocked end
--@ use sliding_window_assume
  end
--@ use sliding_window_find

  -- schedule()
  local grant, latest, culprit, opens, rooms = at, 0, nil, 0, {}
  if not given_up and last > grant then grant = last end
  for r = 1, count do
    local k = order[r]
    local excess = held[r] + cost - table[2 * k - 1]
    if given_up then
      if lefts[k] < cost then lefts[k] = cost end
    elseif excess > 0 then -- leaving()
      local time, units, number = firsts[r], firsts_units[r], entries[r] + 1
      while units < excess and number < sequence do
        excess = excess - units
        time, units = entry(number)
        number = number + 1
      end
      rooms[k] = time + table[2 * k]
    end
  end
  local makes_room = given_up and last > at
  if not makes_room and sequence - first >= Rule.max_entries and entries[count] == first then
    local k = order[count]
    lefts[k] = 0
    if cost > 0 then
      opens = firsts[count] + longest
      if not rooms[k] or opens > rooms[k] then rooms[k] = opens end
    end
  end
  for k = 1, count do
    if rooms[k] and rooms[k] > latest then latest, culprit = rooms[k], k end
  end
  if stands > latest then latest, culprit = stands, count + 1 end
  if latest > grant then grant = latest end

  local wait = 0
  if grant ~= at and not block_span then wait = grant - now end
  local allowed = block_span or wait <= max_wait and grant <= word_limit and opens == 0
  local taken = 0
  if allowed and spends then taken = cost end
  local block = stands
  if block_span and block_span > 0 then
    local ends = at + block_span
    if ends > word_limit then ends = word_limit end
    if ends > block then block = ends end
  end
  local told_entry, told_time = 0, 0
  local was_empty = sequence == first
  if taken > 0 or block > stands then -- admit()
    local later, later_units = 0, 0
    while given_up and later < size do
      local time, units = entry(sequence - 1 - later)
      if time <= at then break end
      later, later_units = later + 1, later_units + units
      if later_units > word_limit then later_units = word_limit end
    end
    local own, own_units, logged = sequence - later, later_units + taken, 0
    if own_units > word_limit then own_units = word_limit end
    if own_units > 0 then logged = 1 end
    local kept = own - first
    local total = kept
    if kept ~= capacity or entries[count] <= first then total = kept + logged end
    if total > Rule.max_entries then total = Rule.max_entries end
    local ring = capacity -- grown()
    while ring < total do
      local wider = 2 * ring
      if ring < most and most < wider then wider = most end
      if wider > Rule.max_entries then wider = Rule.max_entries end
      ring = wider
    end
    local all, known_places = places, count
    if count > all then all = count end
    local turns = not fresh and (ring > capacity or all > places)
    local function slot(number)
      local place = next - (sequence - number)
      if turns then place = number - oldest end
      return place % ring
    end
    local new_newest, new_till, new_since, new_older, new_top = last, till, since, longest, top
    if logged > 0 then
      new_newest = grant
      if grant + keep > till then new_till = grant + keep end
      if new_till > word_limit then new_till = word_limit end
    end
    if not fresh and longest > kept_span then new_since = newest end
    if not fresh and older < new_older then new_older = older end
    if most > new_top then new_top = most end
    for r = 1, count do
      held[r] = held[r] + taken
      if held[r] > word_limit then held[r] = word_limit end
      if logged > 0 and entries[r] >= own then
        held[r], entries[r], firsts[r], firsts_units[r] = own_units, own, grant, own_units
      end
    end
    local front = struct.pack('<i8i8i8i8i8i8i8i8i8i8i8i8i8', at, new_newest, ring, slot(own + logged), total,
      own + logged, new_till, block, all, longest, new_since, new_older, new_top)
--@ use sliding_window_places
    if turns then -- turn()
      local from = 8 * base + 1
      local raw = redis.call('GETRANGE', key, string.format('%d', from),
        string.format('%d', from + 16 * capacity - 1))
      raw = raw .. string.rep('\0', 16 * capacity - #raw)
      local start = next - size
      if start < 0 then start = start + capacity end
      front = front .. string.sub(raw, 16 * start + 1) .. string.sub(raw, 1, 16 * start)
    end
    local entry_there = ''
    if logged > 0 then entry_there = struct.pack('<i8i8', grant, own_units) end
    if fresh then
      put(0, front .. entry_there)
    else
      put(0, front)
      for i = oldest - first, 1, -1 do
        put(13 + 5 * all + 2 * slot(oldest - i), struct.pack('<i8i8', assumed[i], assumed[-i]))
      end
      if logged > 0 then put(13 + 5 * all + 2 * slot(own), entry_there) end
    end
    if taken > 0 then told_entry, told_time = own, grant end
    for k = 1, count do
      lefts[k] = lefts[k] - taken
      if lefts[k] < 0 then lefts[k] = 0 end
    end
    if total >= Rule.max_entries and entries[count] == own + logged - total then lefts[order[count]] = 0 end
  end

  local part, output = 1, ''
  for k = 1, count do
    if lefts[k] < lefts[part] then part = k end
    output = output .. struct.pack('<i8', lefts[k])
  end
  local told = part
  if not allowed and culprit then told = culprit end
  if given_up and last > at then last = at end
  if taken > 0 then last = grant end
  local remaining, clear = lefts[part], last + longest - now
  if last > at or block > at then remaining = 0 end -- nothing overtakes what is reserved
  if was_empty and taken == 0 then clear = 0 end
  if block - now > clear then clear = block - now end
  if clear < 0 then clear = 0 end
  if clear > word_limit then clear = word_limit end
  local status = 1
  if not allowed then
    status, wait = 0, wait - max_wait
    if opens - now > wait then wait = opens - now end
    if wait < 1 then wait = 1 end
    if wait > word_limit then wait = word_limit end
  end
  return status, remaining, wait, clear, struct.pack('<i8i8i8', told - 1, told_entry, told_time) .. output

--@ piece sliding_window_before
-- The twin of Before in src/rules/sliding_window_settle.cpp in its place in a rule.
  local longest
--@ use sliding_window_table
--@ use sliding_window_log
  local at = now
  if stamp > at then at = stamp end
--@ use sliding_window_assume
--@ use sliding_window_find
  local was_empty = sequence == first
  if sequence - first >= Rule.max_entries and entries[count] == first then lefts[order[count]] = 0 end

--@ piece sliding_window_edit
-- The twin of edit() in src/rules/sliding_window_settle.cpp in its place in a rule. `edited`: the number of the entry
-- that has `edited_units` afterwards; `ends`: entries from here on are taken out; `change`: of what windows hold that hold
-- the entry.
  if changed > 0 then
    local function slot(number)
      local place = next - (sequence - number)
      if place < 0 then place = place + capacity end
      return place
    end
    last = 0
    if ends > oldest then last = entry(ends - 1) end
    for r = 1, count do
      local k = order[r]
      if entries[r] >= ends then
        held[r], entries[r], firsts[r], firsts_units[r] = 0, ends, 0, 0
      else
        if entries[r] <= edited then
          held[r] = held[r] + change
          if held[r] < 0 then held[r] = 0 end
          if held[r] > word_limit then held[r] = word_limit end
        end
        if entries[r] == edited then firsts_units[r] = edited_units end
      end
      lefts[k] = table[2 * k - 1] - held[r]
      if lefts[k] < 0 then lefts[k] = 0 end
    end
    local front = struct.pack('<i8i8i8i8i8i8i8i8i8i8i8i8i8', stamp, last, capacity, slot(ends), ends - oldest, ends,
      till, blocked, places, kept_span, since, older, top)
    local all, known_places = places, count
    if known_places > places then known_places = places end
    if first < oldest then known_places = 0 end -- what is assumed is in no place that is stored
--@ use sliding_window_places
    put(0, front)
    if edited < ends then
      put(base + 2 * slot(edited), struct.pack('<i8i8', (entry(edited)), edited_units))
    end
    if ends - first >= Rule.max_entries and entries[count] == first then lefts[order[count]] = 0 end
  end
  -- tell()
  local remaining, output = lefts[1], struct.pack('<i8', changed)
  for k = 1, count do
    if lefts[k] < remaining then remaining = lefts[k] end
    output = output .. struct.pack('<i8', lefts[k])
  end
  local block = 0
  if blocked > at then block = blocked end
  if last > at or block > at then remaining = 0 end
  local clear = last + longest - now
  if was_empty then clear = 0 end
  if block - now > clear then clear = block - now end
  if clear < 0 then clear = 0 end
  if clear > word_limit then clear = word_limit end
  return 1, remaining, 0, clear, output

--@ operation sliding_window_acquire(head[18] | limit, cost, max_wait, longest)
-- The twin of SlidingWindowRule::acquire.
  local spends, block_span = true, nil
--@ use sliding_window_decide

--@ operation sliding_window_peek(head[18] | limit, cost, max_wait, longest)
-- The twin of SlidingWindowRule::peek.
  local spends, block_span = false, nil
--@ use sliding_window_decide

--@ operation sliding_window_block(head[18] | limit, span, longest)
-- The twin of SlidingWindowRule::block.
  if span < 0 or span > Rule.max_span then return Errc.invalid_argument end
  local cost, max_wait, spends, block_span = 0, 0, false, span
--@ use sliding_window_decide

--@ operation sliding_window_settle(head[18] | limit, asked, own, own_time, direction, keep)
-- The twin of SlidingWindowRule::settle: same order.
  if asked < 0 or asked > word_limit then return Errc.invalid_cost end
  if own < 0 or own > word_limit or own_time < 0 or own_time > word_limit or keep < 0 or keep > word_limit or
    direction < 0 or direction > 1 then
    return Errc.invalid_argument
  end
--@ use sliding_window_before
  local changed, edited, edited_units, ends, change = 0, own, 0, sequence, 0
  if own >= oldest and own >= entries[count] and own < sequence then
    local time, units = entry(own)
    local most_change = units
    if direction == 1 then most_change = Rule.max_units - held[count] end
    if most_change < 0 then most_change = 0 end
    if time == own_time then
      changed = asked
      if most_change < changed then changed = most_change end
    end
    change = changed
    if direction == 0 then change = -changed end
    edited_units = units + change
    if changed > 0 and own == sequence - 1 and edited_units == 0 then -- behind_units()
      ends = own
      while ends > oldest do
        local _, of_it = entry(ends - 1)
        if of_it > 0 then break end
        ends = ends - 1
      end
    end
  end
--@ use sliding_window_edit

--@ operation sliding_window_reward(head[18] | limit, asked, longest)
-- The twin of SlidingWindowRule::reward: same order.
  if asked < 0 or asked > word_limit then return Errc.invalid_cost end
  if longest < 1 or longest > Rule.max_span then return Errc.invalid_argument end
--@ use sliding_window_before
  local edited, edited_units, ends = word_limit, 0, sequence
  local rest = asked
  if held[count] < rest then rest = held[count] end
  local changed = rest
  while rest > 0 and ends > oldest do
    local _, of_it = entry(ends - 1)
    if of_it > rest then
      edited, edited_units, rest = ends - 1, of_it - rest, 0
    else
      rest, ends = rest - of_it, ends - 1
    end
  end
  changed = changed - rest
  local change = -changed
  while changed > 0 and edited == word_limit and ends > oldest do -- behind_units()
    local _, of_it = entry(ends - 1)
    if of_it > 0 then break end
    ends = ends - 1
  end
--@ use sliding_window_edit

--@ operation sliding_window_reset(head[18] | limit)
-- The twin of SlidingWindowRule::reset: same names, same order.
  local longest
--@ use sliding_window_table
  local output = struct.pack('<i8', 0)
  for i = 1, #table, 2 do output = output .. struct.pack('<i8', table[i]) end
  put(0, string.rep('\0', 104))
  return 1, least, 0, 0, output
