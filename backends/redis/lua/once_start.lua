-- The driver of a plan with an id, which goes on in mixed.lua. The last key is that of its record:
-- one byte, its kind, and little-endian 64-bit words: the instant, the plan's fingerprint, its
-- verdicts and output words. Behind the nonce stand the answer's words of detail (2 bytes) and the
-- fingerprint. While the record is kept, the answer is what it says, and nothing else is done.
local steps = #KEYS - 1
local record = redis.pcall('GET', KEYS[#KEYS])
if type(record) == 'table' and string.sub(record.err, 1, 9) ~= 'WRONGTYPE' then return record end
if record then
  local words = 4 * steps + struct.unpack('<I2', ARGV[1], 9)
  local status
  if type(record) == 'table' or #record % 8 ~= 1 or string.byte(record) >= 32 then
    status = -15 -- Errc::wrong_type
  elseif string.byte(record) ~= 12 then -- StateKind::idempotency_record
    status = -16 -- Errc::wrong_kind
  elseif #record < 17 then
    status = -17 -- Errc::corrupt_state
  elseif struct.unpack('<i8', record, 2) + 600000000 <= now then -- id_kept_for
    status = 0 -- means nothing any more
  elseif string.sub(record, 10, 17) ~= string.sub(ARGV[1], 11, 18) then
    status = -43 -- Errc::id_reused
  elseif #record < 17 + 8 * words then
    status = -17 -- Errc::corrupt_state
  end
  if not status then
    for j = 0, words + 1 do
      local value = struct.unpack('<i8', record, 2 + 8 * j)
      local limit = 4503599627370496 -- word_limit
      if j > 1 and j < 2 + 4 * steps then
        if j % 4 == 2 then limit = 1 elseif j % 4 < 2 then limit = 2 * limit end -- status, hints
      end
      if value < 0 or value > limit or limit == 1 and value ~= 1 then
        status = -17 -- Errc::corrupt_state
      end
    end
  end
  if status and status ~= 0 then
    return struct.pack('<c8i8', ARGV[1], now) ..
      string.rep(struct.pack('<i8i8i8i8', status, 0, 0, 0), steps) ..
      string.rep('\0', 8 * (words - 4 * steps))
  end
  if not status then
    return struct.pack('<c8', ARGV[1]) .. string.sub(record, 2, 9) ..
      string.sub(record, 18, 17 + 8 * words)
  end
end

