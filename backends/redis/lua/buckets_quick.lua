-- The short cut of a plan of two or three takes from token buckets, each one that
-- token_bucket_take_quick.lua would decide: same names, with a number for each step, since a loop and
-- its tables cost more than what they decide. ARGV[1]: the nonce (8 bytes), and for each step five
-- little-endian 64-bit words, the arguments but for full_after, which no twin reads, and how long the
-- state is kept, in milliseconds. Replies as mixed.lua does.
repeat
  local message, keys, struct, call = ARGV[1], KEYS, struct, redis.call
  local key1, key2, key3 = keys[1], keys[2], keys[3]
  local pack, read = struct.pack, struct.unpack
  local raws, words
  if key3 then
    raws, words = call('MGET', key1, key2, key3), '<lllllllllllllll'
  else
    raws, words = call('MGET', key1, key2), '<llllllllll'
  end
  -- MGET shows a key of another type as absent: GET tells which it is.
  local absent = '\18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  local raw1 = raws[1] or redis.pcall('GET', key1) or absent
  local raw2 = raws[2] or redis.pcall('GET', key2) or absent
  if #raw1 ~= 25 or #raw2 ~= 25 then break end
  local capacity1, refill1, period1, cost1, keep1,
    capacity2, refill2, period2, cost2, keep2,
    capacity3, refill3, period3, cost3, keep3 = read(words, message, 9)
  local all = true

  local kind1, word1, stamp1, before1 = read('<BLLL', raw1)
  local status1 = 1
  if kind1 ~= 18 or word1 > 4503599627370496 or
    stamp1 > now or cost1 < 1 then break end
  local limit1 = capacity1 * period1
  local level1 = (word1 - word1 % 2) / 2 - (now - stamp1) * refill1
  if level1 < 0 then level1 = 0 end
  local want1 = level1 + cost1 * period1
  local free1, retry_after1, spent1 = limit1 - want1, 0, want1
  if want1 > limit1 then
    if cost1 > capacity1 then break end
    all, status1, free1, spent1 = false, 0, limit1 - level1, level1
    retry_after1 = (want1 - limit1 + refill1 - 1) / refill1
    if free1 < 0 then free1 = 0 end
  end

  local kind2, word2, stamp2, before2 = read('<BLLL', raw2)
  local status2 = 1
  if kind2 ~= 18 or word2 > 4503599627370496 or
    stamp2 > now or cost2 < 1 then break end
  local limit2 = capacity2 * period2
  local level2 = (word2 - word2 % 2) / 2 - (now - stamp2) * refill2
  if level2 < 0 then level2 = 0 end
  local want2 = level2 + cost2 * period2
  local free2, retry_after2, spent2 = limit2 - want2, 0, want2
  if want2 > limit2 then
    if cost2 > capacity2 then break end
    all, status2, free2, spent2 = false, 0, limit2 - level2, level2
    retry_after2 = (want2 - limit2 + refill2 - 1) / refill2
    if free2 < 0 then free2 = 0 end
  end

  local status3, want3, free3, retry_after3, spent3, before3
  if key3 then
    local raw3 = raws[3] or redis.pcall('GET', key3) or absent
    if #raw3 ~= 25 then break end
    local kind3, word3, stamp3
    kind3, word3, stamp3, before3 = read('<BLLL', raw3)
    status3 = 1
      if kind3 ~= 18 or word3 > 4503599627370496 or
      stamp3 > now or cost3 < 1 then break end
    local limit3 = capacity3 * period3
    local level3 = (word3 - word3 % 2) / 2 - (now - stamp3) * refill3
    if level3 < 0 then level3 = 0 end
    want3 = level3 + cost3 * period3
    free3, retry_after3, spent3 = limit3 - want3, 0, want3
    if want3 > limit3 then
      if cost3 > capacity3 then break end
      all, status3, free3, spent3 = false, 0, limit3 - level3, level3
      retry_after3 = (want3 - limit3 + refill3 - 1) / refill3
      if free3 < 0 then free3 = 0 end
    end
  end

  if all then
    local expires1, expires2, expires3 = now + 1000 * keep1, now + 1000 * keep2, nil
    -- In place first: as in plan_end.lua.
    if before1 <= expires1 and before1 > expires1 - 500000 then
      call('SETRANGE', key1, '1', pack('<ll', 2 * want1, now))
      expires1 = nil
    end
    if before2 <= expires2 and before2 > expires2 - 500000 then
      call('SETRANGE', key2, '1', pack('<ll', 2 * want2, now))
      expires2 = nil
    end
    if key3 then
      expires3 = now + 1000 * keep3
      if before3 <= expires3 and before3 > expires3 - 500000 then
        call('SETRANGE', key3, '1', pack('<ll', 2 * want3, now))
        expires3 = nil
      end
    end
    if expires1 then
      call('PSETEX', key1, string.format('%d', keep1),
        pack('<Blll', 18, 2 * want1, now, expires1))
    end
    if expires2 then
      call('PSETEX', key2, string.format('%d', keep2),
        pack('<Blll', 18, 2 * want2, now, expires2))
    end
    if expires3 then
      call('PSETEX', key3, string.format('%d', keep3),
        pack('<Blll', 18, 2 * want3, now, expires3))
    end
  end
  if key3 then
    return pack('<c8lllllllllllll', message, now,
      status1, free1 / period1, retry_after1, (spent1 + refill1 - 1) / refill1,
      status2, free2 / period2, retry_after2, (spent2 + refill2 - 1) / refill2,
      status3, free3 / period3, retry_after3, (spent3 + refill3 - 1) / refill3)
  end
  return pack('<c8lllllllll', message, now,
    status1, free1 / period1, retry_after1, (spent1 + refill1 - 1) / refill1,
    status2, free2 / period2, retry_after2, (spent2 + refill2 - 1) / refill2)
until true

