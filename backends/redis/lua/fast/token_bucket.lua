-- The fast path of a plan of two or three calls from token buckets, each of a state that is there, with a stamp that is
-- not ahead of the clock, and of a cost that is not zero: no functions, no tables, one pack() for the reply. Words of
-- states are read as unsigned, so that one that is below zero is one that is too large. pack() drops what is behind the
-- point: floor(a / b) is a / b, and its ceiling (a + b - 1) / b.
--@ fast_plan token_bucket_acquire
local read, call = struct.unpack, redis.call
--@ repeat n = 2..3
repeat -- of $n steps
  if steps ~= $n then break end
  local all = true

  --@ repeat k = 1..$n
  if #ARGV[$k + 1] ~= 9 + 8 * Operation.argument_count then break end -- of another operation
  local id$k, capacity$k, refill$k, period$k, full_after$k, cost$k, keep$k =
    read('<Bllllll', ARGV[$k + 1])
  local raw$k = raws[$k]
  if id$k ~= Operation.id or not raw$k or #raw$k ~= 25 then break end
  local kind$k, word$k, stamp$k, before$k = read('<BLLL', raw$k)
  if kind$k ~= Operation.kind or word$k > word_limit or stamp$k > now or
    before$k >= 2 * word_limit or cost$k < 1 then break end
  local limit$k = capacity$k * period$k
  local level$k = (word$k - word$k % 2) / 2 - (now - stamp$k) * refill$k
  if level$k < 0 then level$k = 0 end
  local want$k = level$k + cost$k * period$k
  local status$k, free$k, retry_after$k, spent$k = 1, limit$k - want$k, 0, want$k
  if want$k > limit$k then
    if cost$k > capacity$k then break end
    all, status$k, free$k, spent$k = false, 0, limit$k - level$k, level$k
    retry_after$k = (want$k - limit$k + refill$k - 1) / refill$k
    if free$k < 0 then free$k = 0 end
  end
  --@ end

  if all then
    local places, write = 0, redis.pcall
    --@ repeat k = 1..$n
    local expires$k = now + 1000 * keep$k
    local in_place$k = before$k > expires$k - 500000
    if in_place$k then places = places + 1 end
    --@ end
    if places ~= 0 and places ~= $n then break end -- plan.lua checks the right to both commands
    --@ repeat k = 1..$n
    local done$k
    if in_place$k then
      done$k = write('SETRANGE', KEYS[$k], '1', pack('<ll', 2 * want$k, now))
    else
      done$k = write('PSETEX', KEYS[$k], string.format('%d', keep$k),
        pack('<Blll', kind$k, 2 * want$k, now, expires$k))
    end
    if type(done$k) == 'table' and done$k.err then return done$k end
    write = call
    --@ end
  end
  return pack('<c8l$n[llll]', ARGV[1], now
    $n[, status$k, free$k / period$k, retry_after$k, (spent$k + refill$k - 1) / refill$k])
until true
--@ end
