-- The fast path of exact windows, for a log that has a place for each of one or two windows, in the order of their
-- spans, that has room for an entry, and that is not blocked: the names of the rule, with a number for each window. Words
-- are read as unsigned, so that one that is below zero is one that is too large. A fast path that returns nothing has
-- changed nothing: the rule decides.
--@ fast sliding_window_acquire
local pack, read, format = struct.pack, struct.unpack, string.format
--@ repeat n = windows 1..2
if #message - position == 39 + 16 * $n then
  if #seen < 105 + 40 * $n then return end
  local kind, stamp, newest, capacity, next, size, sequence, till, blocked, places, kept_span, since, older,
    top $n[, held$k, entry$k, first$k, its$k, known$k] = read('<BLLLLLLLLLLLLL$n[LLLLL]', seen)
  local limit, cost, max_wait, longest$n[, window$k, span$k] = read('<LLLL$n[LL]', message, position)
  local oldest = sequence - size
  if kind ~= Operation.kind or places ~= $n or blocked ~= 0 or cost < 1 or cost > limit or limit > word_limit or
    max_wait > Rule.max_span or longest < 1 or longest > Rule.max_span or
    capacity > Rule.max_entries or next >= capacity or size > capacity or oldest < 1 or sequence > word_limit or
    stamp > word_limit or stamp > now + Rule.max_ahead or newest > word_limit or since > word_limit or
    kept_span ~= span$n or older > kept_span or top > Rule.max_limit or till > word_limit or now >= till then
    return
  end
  local at, shorter = now, 0
  if stamp > at then at = stamp end

  --@ repeat k = 1..$n
  if cost > window$k or window$k > top or span$k <= shorter or span$k > Rule.max_span or held$k > word_limit or
    entry$k < oldest or entry$k > sequence or entry$k == sequence and held$k > 0 or
    first$k > word_limit or its$k > word_limit or known$k > at - span$k then
    return
  end
  shorter = span$k
  local edge$k = at - span$k
  if newest <= edge$k then -- locate()
    held$k, entry$k, first$k, its$k = 0, sequence, 0, 0
  elseif entry$k < sequence and first$k <= edge$k then
    local offset = 16 * (next - (sequence - entry$k - 1))
    if offset < 0 then offset = offset + 16 * capacity end
    local last = offset + 63
    if last > 16 * capacity - 1 then last = 16 * capacity - 1 end
    local four = redis.call('GETRANGE', key, format('%d', offset + 105 + 40 * $n),
      format('%d', last + 105 + 40 * $n))
    if #four % 16 ~= 0 then return end
    if #four < 64 then four = four .. string.rep('\0', 64 - #four) end
    local a, of_a, b, of_b, c, of_c, d, of_d = read('<LLLLLLLL', four)
    if a > word_limit or of_a > word_limit or b > word_limit or of_b > word_limit or c > word_limit or
      of_c > word_limit or d > word_limit or of_d > word_limit then
      return
    end
    local there = sequence - entry$k
    if there > 1 and a > edge$k then
      held$k, entry$k, first$k, its$k = held$k - its$k, entry$k + 1, a, of_a
    elseif there > 2 and b > edge$k then
      held$k, entry$k, first$k, its$k = held$k - its$k - of_a, entry$k + 2, b, of_b
    elseif there > 3 and c > edge$k then
      held$k, entry$k, first$k, its$k = held$k - its$k - of_a - of_b, entry$k + 3, c, of_c
    elseif there > 4 and d > edge$k then
      held$k, entry$k, first$k, its$k = held$k - its$k - of_a - of_b - of_c, entry$k + 4, d, of_d
    else
      return
    end
    if held$k < 0 then return end
  end
  local left$k = window$k - held$k - cost
  if its$k + left$k < 0 then return end -- more than one entry has to leave
  --@ end

  if size + 1 >= Rule.max_entries and entry$n <= oldest + 1 then return end

  local grant, latest, wait, status, culprit, number = at, 0, 0, 1, nil, 0
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
    grant = 0
    --@ repeat k = 1..$n
    left$k = window$k - held$k
    --@ end
  else
    if size < capacity then
      size = size + 1
    elseif entry$n == oldest then
      return
    end
    culprit, number = nil, sequence
    local after = next + 1
    if after == capacity then after = 0 end
    --@ repeat k = 1..$n
    if entry$k == sequence then first$k, its$k = grant, cost end
    --@ end
    -- The time to live is renewed once in half a second: a second was added to it.
    renews = max_wait > 0 or at - at % 500000 ~= stamp - stamp % 500000
    if grant + longest > till then till = grant + longest end
    if till > word_limit then till = word_limit end
    front = pack('<lllllllllllll$n[lllll]', at, grant, capacity, after, size, sequence + 1, till, blocked, places,
      kept_span, since, older, top $n[, held$k + cost, entry$k, first$k, its$k, edge$k])
    rest = {16 * next + 105 + 40 * $n, pack('<ll', grant, cost)}
    newest = grant
  end

  local remaining, part = word_limit, 0
  --@ repeat k = 1..$n
  if left$k < 0 then left$k = 0 end
  if left$k < remaining then remaining, part = left$k, $k - 1 end
  --@ end
  if newest > at then remaining = 0 end -- nothing overtakes what is reserved
  local clear = newest + span$n - now
  if clear < 0 then clear = 0 end
  if clear > word_limit then clear = word_limit end
  return status, remaining, wait, clear, pack('<lll$n[l]', culprit or part, number, grant$n[, left$k]), front, renews,
    rest
end
--@ end
