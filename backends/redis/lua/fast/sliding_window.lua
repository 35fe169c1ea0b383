-- The fast path of exact windows, for a log that has a place for each of one or two windows, is as large as they need,
-- and is not blocked (a layout of n): the names of the rule, with a number for each window. Words are read as
-- unsigned, so that one that is below zero is one that is too large. A fast path that returns nothing has changed
-- nothing: the rule decides.
--@ fast sliding_window_acquire
local pack, read, format = struct.pack, struct.unpack, string.format
--@ repeat n = windows 1..2
if #message - position == 39 + 16 * $n then
  if #seen < 89 + 24 * $n then return end
  local kind, stamp, newest, capacity, next, size, dropped, kept_span, layout, since, older,
    till $n[, count$k, before$k, first$k] = read('<BLLLLLLLLLLL$n[LLL]', seen)
  local limit, cost, max_wait, longest$n[, window$k, span$k] = read('<LLLL$n[LL]', message, position)
  if kind ~= Operation.kind or layout ~= $n or cost < 1 or cost > limit or limit > word_limit or
    max_wait > Rule.max_span or longest < 1 or longest > Rule.max_span or
    capacity > Rule.max_limit or next >= capacity or size > capacity or
    dropped > 0 and size < capacity or dropped > word_limit or kept_span > Rule.max_span or
    stamp > word_limit or stamp > now + Rule.max_ahead or newest > word_limit or
    since > word_limit or older > kept_span or till > word_limit or now >= till then
    return
  end
  local at, span = now, 0
  if stamp > at then at = stamp end

  --@ repeat k = 1..$n
  if cost > window$k or window$k > capacity or span$k < 1 or span$k > Rule.max_span or
    count$k > size or before$k > word_limit or first$k > word_limit then
    return
  end
  if span$k > span then span = span$k end
  local edge$k = at - span$k
  if count$k > 0 and first$k <= edge$k then -- fewer()
    if newest <= edge$k then
      count$k, before$k, first$k = 0, newest, 0
    elseif count$k == 2 then
      count$k, before$k, first$k = 1, first$k, newest
    else
      local offset = 8 * (next - count$k) + 97 + 24 * $n
      if offset < 89 + 24 * $n then offset = offset + 8 * capacity end
      local last = 8 * capacity + 88 + 24 * $n
      if last > offset + 31 then last = offset + 31 end
      local four = redis.call('GETRANGE', key, format('%d', offset), format('%d', last))
      if count$k < 3 or #four % 8 ~= 0 then return end
      if #four < 32 then four = four .. string.rep('\0', 32 - #four) end
      local a, b, c, d = read('<LLLL', four)
      if a > word_limit or b > word_limit or c > word_limit or d > word_limit then return end
      if a > edge$k then
        count$k, before$k, first$k = count$k - 1, first$k, a
      elseif b > edge$k then
        count$k, before$k, first$k = count$k - 2, a, b
      elseif c > edge$k and count$k > 3 then
        count$k, before$k, first$k = count$k - 3, b, c
      elseif d > edge$k and count$k > 4 then
        count$k, before$k, first$k = count$k - 4, c, d
      else
        return
      end
    end
  elseif before$k > edge$k and count$k < size then
    return
  end
  local left$k = window$k - count$k - cost
  if left$k < -1 then return end
  --@ end
  if span ~= kept_span then return end

  local grant, latest, wait, status, culprit = at, 0, 0, 1, nil
  local front, renews, rest
  if newest > grant then grant = newest end
  --@ repeat k = 1..$n
  if left$k < 0 and first$k + span$k > latest then
    latest, culprit = first$k + span$k, $k - 1
  end
  --@ end
  if latest > grant then grant = latest end
  if grant ~= at then wait = grant - now end
  if wait > max_wait or grant > word_limit then
    status, wait = 0, wait - max_wait
    if wait < 1 then wait = 1 end
    if wait > word_limit then wait = word_limit end
    --@ repeat k = 1..$n
    left$k = window$k - count$k
    --@ end
  else
    culprit = nil
    local after = next + cost
    if after > capacity then return end
    --@ repeat k = 1..$n
    if count$k + cost > capacity then return end
    if count$k == 0 then first$k = grant end
    --@ end
    if after == capacity then after = 0 end
    size = size + cost
    if size > capacity then
      dropped, size = dropped + size - capacity, capacity
      if dropped > word_limit / 2 then dropped = word_limit / 2 end
    end
    -- The time to live is renewed once in half a second: a second was added to it.
    renews = max_wait > 0 or at - at % 500000 ~= stamp - stamp % 500000
    if grant + longest > till then till = grant + longest end
    if till > word_limit then till = word_limit end
    front = pack('<lllllllllll$n[lll]', at, grant, capacity, after, size, dropped, kept_span, layout,
      since, older, till $n[, count$k + cost, before$k, first$k])
    local units = pack('<l', grant)
    if cost > 1 then units = string.rep(units, cost) end
    rest = {8 * next + 89 + 24 * $n, units}
    newest = grant
  end

  local remaining, part = word_limit, 0
  --@ repeat k = 1..$n
  if left$k < 0 then left$k = 0 end
  if left$k < remaining then remaining, part = left$k, $k - 1 end
  --@ end
  if newest > at then remaining = 0 end -- nothing overtakes what is reserved
  local clear = newest + span - now
  if clear < 0 then clear = 0 end
  if clear > word_limit then clear = word_limit end
  return status, remaining, wait, clear, pack('<l$n[l]', culprit or part$n[, left$k]), front, renews, rest
end
--@ end
