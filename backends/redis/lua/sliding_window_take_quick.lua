-- The short cut of sliding_window_take.lua, for a log that has a place for each window, is as large
-- as they need, and is not blocked (a layout of n): same names, with a number for each window, and a
-- text for each number of windows, since a loop and words that are not there cost more than what they
-- decide. Words are read as unsigned, so that one that is below zero is one that is too large. The
-- time to live is renewed once in half a second: a second was added to it.
local message, key, call = ARGV[1], KEYS[1], redis.call
local pack, read, format = struct.pack, struct.unpack, string.format

repeat -- two windows
  if #message ~= 80 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '112')
  if #raw ~= 113 then break end
  local kind, stamp, newest, capacity, next, size, dropped, kept_span, layout, count1, before1,
    first1, count2, before2, first2 = read('<BLLLLLLLLLLLLLL', raw)
  local limit, cost, max_wait, longest, window1, span1, window2, span2 =
    read('<LLLLLLLL', message, 9)
  if kind ~= 21 or layout ~= 2 or cost < 1 or cost > limit or limit > 4503599627370496 or
    cost > window1 or window1 > capacity or cost > window2 or window2 > capacity or
    span1 < 1 or span1 > 31622400000000 or span2 < 1 or span2 > 31622400000000 or
    max_wait > 31622400000000 or longest < 1 or longest > 31622400000000 or capacity > 65536 or
    next >= capacity or size > capacity or dropped > 0 and size < capacity or
    dropped > 4503599627370496 or kept_span > 31622400000000 or
    stamp > 4503599627370496 or stamp > now + 60000000 or newest > 4503599627370496 or
    count1 > size or before1 > 4503599627370496 or first1 > 4503599627370496 or
    count2 > size or before2 > 4503599627370496 or first2 > 4503599627370496 then break end
  local at = now
  if stamp > at then at = stamp end

  local edge = at - span1
  if count1 > 0 and first1 <= edge then -- fewer()
    if newest <= edge then
      count1, before1, first1 = 0, newest, 0
    elseif count1 == 2 then
      count1, before1, first1 = 1, first1, newest
    else
      local offset = 8 * (next - count1) + 121
      if offset < 113 then offset = offset + 8 * capacity end
      local last = 8 * capacity + 112
      if last > offset + 31 then last = offset + 31 end
      local four = call('GETRANGE', key, format('%d', offset), format('%d', last))
      if count1 < 3 or #four % 8 ~= 0 then break end
      if #four < 32 then four = four .. string.rep('\0', 32 - #four) end
      local a, b, c, d = read('<LLLL', four)
      if a > 4503599627370496 or b > 4503599627370496 or c > 4503599627370496 or
        d > 4503599627370496 then break end
      if a > edge then
        count1, before1, first1 = count1 - 1, first1, a
      elseif b > edge then
        count1, before1, first1 = count1 - 2, a, b
      elseif c > edge and count1 > 3 then
        count1, before1, first1 = count1 - 3, b, c
      elseif d > edge and count1 > 4 then
        count1, before1, first1 = count1 - 4, c, d
      else
        break
      end
    end
  elseif before1 > edge and count1 < size then
    break
  end

  edge = at - span2
  if count2 > 0 and first2 <= edge then -- fewer()
    if newest <= edge then
      count2, before2, first2 = 0, newest, 0
    elseif count2 == 2 then
      count2, before2, first2 = 1, first2, newest
    else
      local offset = 8 * (next - count2) + 121
      if offset < 113 then offset = offset + 8 * capacity end
      local last = 8 * capacity + 112
      if last > offset + 31 then last = offset + 31 end
      local four = call('GETRANGE', key, format('%d', offset), format('%d', last))
      if count2 < 3 or #four % 8 ~= 0 then break end
      if #four < 32 then four = four .. string.rep('\0', 32 - #four) end
      local a, b, c, d = read('<LLLL', four)
      if a > 4503599627370496 or b > 4503599627370496 or c > 4503599627370496 or
        d > 4503599627370496 then break end
      if a > edge then
        count2, before2, first2 = count2 - 1, first2, a
      elseif b > edge then
        count2, before2, first2 = count2 - 2, a, b
      elseif c > edge and count2 > 3 then
        count2, before2, first2 = count2 - 3, b, c
      elseif d > edge and count2 > 4 then
        count2, before2, first2 = count2 - 4, c, d
      else
        break
      end
    end
  elseif before2 > edge and count2 < size then
    break
  end

  local left1, left2 = window1 - count1 - cost, window2 - count2 - cost
  local grant, wait, status, told = at, 0, 1, nil
  if left1 < 0 or left2 < 0 or newest > at then
    if newest > grant then grant = newest end
    local latest = 0
    if left1 < 0 then
      if left1 ~= -1 then break end
      latest, told = first1 + span1, 0
    end
    if left2 < 0 then
      if left2 ~= -1 then break end
      if first2 + span2 > latest then latest, told = first2 + span2, 1 end
    end
    if latest > grant then grant = latest end
    if grant ~= at then wait = grant - now end
    if wait > max_wait or grant > 4503599627370496 then -- word_limit
      status, wait = 0, wait - max_wait
      if wait < 1 then wait = 1 end
      if wait > 4503599627370496 then wait = 4503599627370496 end
      left1, left2 = left1 + cost, left2 + cost
    else
      told = nil
    end
    if left1 < 0 then left1 = 0 end
    if left2 < 0 then left2 = 0 end
  end

  local span = span1
  if span2 > span then span = span2 end
  if status == 1 then
    local after = next + cost
    if after > capacity or count1 + cost > capacity or count2 + cost > capacity then break end
    if after == capacity then after = 0 end
    size = size + cost
    if size > capacity then
      dropped, size = dropped + size - capacity, capacity
      if dropped > 2251799813685248 then dropped = 2251799813685248 end
    end
    -- First: a right that is missing shows before anything is written.
    if max_wait > 0 or longest > kept_span or at - at % 500000 ~= stamp - stamp % 500000 then
      if call('PEXPIRE', key, read('<L', message, 73), 'GT') == 0 then -- longer, or taken away
        call('PEXPIRE', key, read('<L', message, 73), 'NX')
      end
    end
    if span < kept_span then kept_span = span end
    if count1 == 0 then first1 = grant end
    if count2 == 0 then first2 = grant end
    call('SETRANGE', key, '1', pack('<llllllllllllll', at, grant, capacity, after, size, dropped,
      kept_span, 2, count1 + cost, before1, first1, count2 + cost, before2, first2))
    local units = pack('<l', grant)
    if cost > 1 then units = string.rep(units, cost) end
    call('SETRANGE', key, format('%d', 8 * next + 113), units)
    newest = grant
  end

  local remaining, part = left1, 0
  if left2 < left1 then remaining, part = left2, 1 end
  if newest > at then remaining = 0 end -- nothing overtakes what is reserved
  local clear = newest + span - now
  if clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  return pack('<c8llllllll', message, now, status, remaining, wait, clear, told or part, left1,
    left2)
until true

repeat -- one window
  if #message ~= 64 then break end
  local raw = redis.pcall('GETRANGE', key, '0', '88')
  if #raw ~= 89 then break end
  local kind, stamp, newest, capacity, next, size, dropped, kept_span, layout, count1, before1,
    first1 = read('<BLLLLLLLLLLL', raw)
  local limit, cost, max_wait, longest, window1, span1 = read('<LLLLLL', message, 9)
  if kind ~= 21 or layout ~= 1 or cost < 1 or cost > limit or limit > 4503599627370496 or
    cost > window1 or window1 > capacity or span1 < 1 or span1 > 31622400000000 or max_wait > 31622400000000 or longest < 1 or
    longest > 31622400000000 or capacity > 65536 or
    next >= capacity or size > capacity or dropped > 0 and size < capacity or
    dropped > 4503599627370496 or kept_span > 31622400000000 or
    stamp > 4503599627370496 or stamp > now + 60000000 or newest > 4503599627370496 or
    count1 > size or before1 > 4503599627370496 or first1 > 4503599627370496 then break end
  local at = now
  if stamp > at then at = stamp end

  local edge = at - span1
  if count1 > 0 and first1 <= edge then -- fewer()
    if newest <= edge then
      count1, before1, first1 = 0, newest, 0
    elseif count1 == 2 then
      count1, before1, first1 = 1, first1, newest
    else
      local offset = 8 * (next - count1) + 97
      if offset < 89 then offset = offset + 8 * capacity end
      local last = 8 * capacity + 88
      if last > offset + 31 then last = offset + 31 end
      local four = call('GETRANGE', key, format('%d', offset), format('%d', last))
      if count1 < 3 or #four % 8 ~= 0 then break end
      if #four < 32 then four = four .. string.rep('\0', 32 - #four) end
      local a, b, c, d = read('<LLLL', four)
      if a > 4503599627370496 or b > 4503599627370496 or c > 4503599627370496 or
        d > 4503599627370496 then break end
      if a > edge then
        count1, before1, first1 = count1 - 1, first1, a
      elseif b > edge then
        count1, before1, first1 = count1 - 2, a, b
      elseif c > edge and count1 > 3 then
        count1, before1, first1 = count1 - 3, b, c
      elseif d > edge and count1 > 4 then
        count1, before1, first1 = count1 - 4, c, d
      else
        break
      end
    end
  elseif before1 > edge and count1 < size then
    break
  end

  local left1 = window1 - count1 - cost
  local grant, wait, status = at, 0, 1
  if left1 < 0 or newest > at then
    if newest > grant then grant = newest end
    local latest = 0
    if left1 < 0 then
      if left1 ~= -1 then break end
      latest = first1 + span1
    end
    if latest > grant then grant = latest end
    if grant ~= at then wait = grant - now end
    if wait > max_wait or grant > 4503599627370496 then -- word_limit
      status, wait = 0, wait - max_wait
      if wait < 1 then wait = 1 end
      if wait > 4503599627370496 then wait = 4503599627370496 end
      left1 = left1 + cost
    end
    if left1 < 0 then left1 = 0 end
  end

  local span = span1
  if status == 1 then
    local after = next + cost
    if after > capacity or count1 + cost > capacity then break end
    if after == capacity then after = 0 end
    size = size + cost
    if size > capacity then
      dropped, size = dropped + size - capacity, capacity
      if dropped > 2251799813685248 then dropped = 2251799813685248 end
    end
    -- First: a right that is missing shows before anything is written.
    if max_wait > 0 or longest > kept_span or at - at % 500000 ~= stamp - stamp % 500000 then
      if call('PEXPIRE', key, read('<L', message, 57), 'GT') == 0 then -- longer, or taken away
        call('PEXPIRE', key, read('<L', message, 57), 'NX')
      end
    end
    if span < kept_span then kept_span = span end
    if count1 == 0 then first1 = grant end
    call('SETRANGE', key, '1', pack('<lllllllllll', at, grant, capacity, after, size, dropped,
      kept_span, 1, count1 + cost, before1, first1))
    local units = pack('<l', grant)
    if cost > 1 then units = string.rep(units, cost) end
    call('SETRANGE', key, format('%d', 8 * next + 89), units)
    newest = grant
  end

  local remaining = left1
  if newest > at then remaining = 0 end -- nothing overtakes what is reserved
  local clear = newest + span - now
  if clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  return pack('<c8lllllll', message, now, status, remaining, wait, clear, 0, left1)
until true

