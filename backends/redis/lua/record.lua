--@ piece read_record
-- Of a plan with an id. The last key is that of its record: one byte, its kind, and little-endian 64-bit words:
-- the instant, the plan's fingerprint, its verdicts and output words. Behind the nonce stand how many output words
-- the answer has (2 bytes) and the fingerprint. While the record is kept, the answer is what it says, and
-- nothing else is done.
local record = redis.pcall('GET', KEYS[#KEYS])
if type(record) == 'table' and string.sub(record.err, 1, 9) ~= 'WRONGTYPE' then return record end
if record then
  local count = 4 * steps + struct.unpack('<I2', ARGV[1], 9)
  local status
  if type(record) == 'table' or #record % 8 ~= 1 or string.byte(record) >= 32 then
    status = Errc.wrong_type
  elseif string.byte(record) ~= IdempotencyRecord.kind then
    status = Errc.wrong_kind
  elseif #record < 17 then
    status = Errc.corrupt_state
  elseif struct.unpack('<i8', record, 2) + IdempotencyRecord.kept_for <= now then
    status = 0 -- means nothing any more
  elseif string.sub(record, 10, 17) ~= string.sub(ARGV[1], 11, 18) then
    status = Errc.id_reused
  elseif #record < 17 + 8 * count then
    status = Errc.corrupt_state
  end
  if not status then
    for j = 0, count + 1 do
      local value = struct.unpack('<i8', record, 2 + 8 * j)
      local limit = word_limit
      if j > 1 and j < 2 + 4 * steps then
        if j % 4 == 2 then limit = 1 elseif j % 4 < 2 then limit = 2 * limit end -- status, hints
      end
      if value < 0 or value > limit or limit == 1 and value ~= 1 then status = Errc.corrupt_state end
    end
  end
  if status and status ~= 0 then
    return struct.pack('<c8i8', ARGV[1], now) ..
      string.rep(struct.pack('<i8i8i8i8', status, 0, 0, 0), steps) ..
      string.rep('\0', 8 * (count - 4 * steps))
  end
  if not status then
    return struct.pack('<c8', ARGV[1]) .. string.sub(record, 2, 9) ..
      string.sub(record, 18, 17 + 8 * count)
  end
end

--@ piece write_record
local done = write('PSETEX', KEYS[#KEYS], 'IdempotencyRecord.ttl',
  struct.pack('<Bi8', IdempotencyRecord.kind, now) .. string.sub(ARGV[1], 11, 18) .. verdicts .. outputs)
if done.err then return done end
