-- The twin of give() in src/rules/sliding_window_give_back.cpp and of the Log of
-- sliding_window_log.hpp: same names, same order, with find(), returned() and withdraw() in their
-- place. Windows count from 1 here; a time of -1 is any time. Returns status, remaining, retry_after,
-- reset_after and the output words.
local function sliding_window_give(head, table, now, units, time)
  local longest
-- SHARED sliding_window_table

-- SHARED sliding_window_log
  local ring, total, oldest = capacity, size, 0
  if most > ring then ring = most end

  local function search(all)
    return sliding_window_search(word, words, base, next, capacity, size, all, newest, kept_span,
      oldest)
  end
  local unit, locate = search(total)
  if ring > capacity and dropped > 0 then
    total = size + dropped
    if total > ring then total = ring end
    oldest = unit(size - 1)
    unit, locate = search(total)
  end

  local at = now
  if stamp > at then at = stamp end
  local counts, lefts = {}, {}
  for k = 1, #table / 2 do
    local count, before, first = 4503599627370496, 0, 0 -- unknown
    if k <= places and not fresh and total == size then
      if k == 1 then
        count, before, first = head[9], head[10], head[11]
      else
        count, before, first = words(5 + 3 * k, 3)
      end
    end
    local edge = at - table[2 * k]
-- SHARED sliding_window_fewer
    counts[k] = locate(count, before, first, edge)
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

  local remaining, output = lefts[1], struct.pack('<i8', told)
  for k = 1, #table / 2 do
    if lefts[k] < remaining then remaining = lefts[k] end
    output = output .. struct.pack('<i8', lefts[k])
  end
  local block = 0
  if blocks == 1 and head[10] > at then block = head[10] end
  if newest > at or block > at then remaining = 0 end
  local clear = newest + longest - now
  if total == 0 then clear = 0 end
  if block - now > clear then clear = block - now end
  if clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  return 1, remaining, 0, clear, output
end

