-- The short cut of sliding_windows_take.lua, for one window or two and a log that is as large as
-- they need: same names, with a number for each window. A window's new edge is looked for among ten
-- units. The time to live is renewed once in half a second: a second was added to it.
repeat
  local message = ARGV[1]
  local length = #message
  if #raw < 113 or #raw % 8 ~= 1 or length ~= 72 and length ~= 56 then break end
  local kind, stamp, newest, capacity, next, size, dropped, kept_span, places, count1, before1,
    first1, count2, before2, first2 = struct.unpack('<Bi8i8i8i8i8i8i8i8i8i8i8i8i8i8', raw)
  local limit, cost, max_wait, longest, window1, span1, window2, span2
  if length == 72 then
    limit, cost, max_wait, longest, window1, span1, window2, span2 =
      struct.unpack('<i8i8i8i8i8i8i8i8', message, 9)
    if places ~= 2 or window2 < cost or window2 > capacity or span2 < 1 or
      span2 > 31622400000000 then break end
  else
    limit, cost, max_wait, longest, window1, span1 = struct.unpack('<i8i8i8i8i8i8', message, 9)
    if places ~= 1 then break end
  end
  if kind ~= 2 or cost < 1 or cost > limit or max_wait < 0 or max_wait > 31622400000000 or
    longest < 1 or longest > 31622400000000 or window1 < cost or window1 > capacity or
    span1 < 1 or span1 > 31622400000000 or capacity > 65536 or size > capacity or size < 1 or
    next < 0 or next >= capacity or kept_span < 0 or kept_span > 31622400000000 or
    dropped < 0 or dropped > 0 and (size < capacity or dropped > 4503599627370496) or
    stamp < 0 or stamp > now + 60000000 or stamp > 4503599627370496 or newest < 0 or
    newest > 4503599627370496 or count1 < 0 or count1 > size or before1 < 0 or
    before1 > 4503599627370496 or first1 < 0 or first1 > 4503599627370496 or count2 < 0 or
    count2 > 4503599627370496 or before2 < 0 or before2 > 4503599627370496 or first2 < 0 or
    first2 > 4503599627370496 then break end
  local keep = longest
  longest = span1

  local at = now
  if stamp > at then at = stamp end
  local grant, latest, culprit = at, 0, nil
  if newest > grant then grant = newest end

  local window, span, count, before, first = window1, span1, count1, before1, first1
  local left1, left2
  local done = 0
  for k = 0, places - 1 do
    if k == 1 then
      window, span, count, before, first = window2, span2, count2, before2, first2
      if span > longest then longest = span end
    end
    local edge = at - span
    local known = count <= size
    if known and count > 0 and first <= edge then -- fewer()
      known = false
      local slot = next - count + 1
      if slot < 0 then slot = slot + capacity end
      if count >= 3 and capacity - slot >= 2 then
        local offset = 8 * (8 + 3 * places + slot) + 1
        local pair = redis.call('GETRANGE', KEYS[1], offset, offset + 15)
        local older, newer = -1, -1
        if #pair == 16 then older, newer = struct.unpack('<i8i8', pair) end
        if older < 0 or older > 4503599627370496 or newer < 0 or newer > 4503599627370496 then
          break
        end
        if older > edge then
          known, count, before, first = true, count - 1, first, older
        elseif newer > edge then
          known, count, before, first = true, count - 2, older, newer
        elseif count >= 11 and capacity - slot >= 10 then
          local run = redis.call('GETRANGE', KEYS[1], offset + 16, offset + 79)
          if #run ~= 64 then break end
          local times = {struct.unpack('<i8i8i8i8i8i8i8i8', run)}
          count, before = count - 3, newer
          for i = 1, 8 do
            local time = times[i]
            if time < 0 or time > 4503599627370496 then
              known = false
              break
            end
            if not known and time > edge then
              known, first = true, time
            elseif not known then
              count, before = count - 1, time
            end
          end
        end
      end
    elseif known then
      known = before <= edge or count == size
    end
    if not known then break end
    local left = window - count
    if left < 0 then left = 0 end
    if count + cost > window then
      if window - cost ~= count - 1 then break end
      local room = first + span
      if room > latest then latest, culprit = room, k end
    end
    if k == 0 then
      count1, before1, first1, left1, left2 = count, before, first, left, left
    else
      count2, before2, first2, left2 = count, before, first, left
    end
    done = done + 1
  end
  if done < places then break end
  if latest > grant then grant = latest end

  local wait = 0
  if grant ~= at then wait = grant - now end
  local status = 1
  if wait <= max_wait and grant <= 4503599627370496 then -- word_limit
    local after = next + cost
    if after > capacity or count1 + cost > capacity then break end
    local packed = struct.pack('<i8', grant)
    if cost > 1 then packed = string.rep(packed, cost) end
    if after == capacity then after = 0 end
    size = size + cost
    if size > capacity then
      dropped, size = dropped + size - capacity, capacity
      if dropped > 2251799813685248 then dropped = 2251799813685248 end
    end
    local renews = max_wait > 0 or keep > kept_span or
      at - at % 500000 ~= stamp - stamp % 500000
    if longest < kept_span then kept_span = longest end
    if count1 == 0 then first1 = grant end
    local front
    if window2 then
      if count2 + cost > capacity then break end
      if count2 == 0 then first2 = grant end
      front = struct.pack('<i8i8i8i8i8i8i8i8i8i8i8i8i8i8', at, grant, capacity, after, size, dropped,
        kept_span, 2, count1 + cost, before1, first1, count2 + cost, before2, first2)
    else
      front = struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', at, grant, capacity, after, size, dropped,
        kept_span, 1, count1 + cost, before1, first1)
    end
    -- First: a right that is missing shows before anything is written.
    if renews then redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') end
    redis.call('SETRANGE', KEYS[1], '1', front)
    redis.call('SETRANGE', KEYS[1], 8 * (8 + 3 * places + next) + 1, packed)
    left1, left2 = left1 - cost, left2 - cost
    if left1 < 0 then left1 = 0 end
    if left2 < 0 then left2 = 0 end
    newest, culprit = grant, nil
  else
    status, wait = 0, wait - max_wait
    if wait < 1 then wait = 1 end
    if wait > 4503599627370496 then wait = 4503599627370496 end
  end

  local remaining, part = left1, 0
  if left2 < left1 then remaining, part = left2, 1 end
  if newest > at then remaining = 0 end -- nothing overtakes what is reserved
  local clear = newest + longest - now
  if clear < 0 then clear = 0 end
  if clear > 4503599627370496 then clear = 4503599627370496 end
  if window2 then
    return struct.pack('<c8i8i8i8i8i8i8i8i8', message, now, status, remaining, wait, clear,
      culprit or part, left1, left2)
  end
  return struct.pack('<c8i8i8i8i8i8i8i8', message, now, status, remaining, wait, clear,
    culprit or part, left1)
until true

