-- The end of the driver of one step on a wide state: decides, writes what the rule put, and replies.
local table_at = 4 * #ARGUMENTS + 5 -- behind two characters of format, eight bytes, each argument
local table_words = (#ARGV[1] + 1 - table_at) / 8
local table = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * table_words), ARGV[1], table_at)}
table[table_words + 1] = nil -- where unpacking ended

local remaining, retry_after, reset_after, output = 0, 0, 0
if not status then
  status, remaining, retry_after, reset_after, output =
    decide(head, table, now, struct.unpack(ARGUMENTS, ARGV[1], 9))
  if is_corrupt then
    status, remaining, retry_after, reset_after, output = -17, 0, 0, 0 -- Errc::corrupt_state
  end
end
if status == 1 and front then
  if fresh then
    redis.call('PSETEX', key, ARGV[2], struct.pack('<B', KIND) .. front)
  else
    -- First: a right that is missing shows before anything is written.
    if redis.call('PEXPIRE', key, ARGV[2], 'GT') == 0 then -- longer, or taken away
      redis.call('PEXPIRE', key, ARGV[2], 'NX')
    end
    redis.call('SETRANGE', key, '1', front)
  end
  if rest then
    for j = 1, #rest, 2 do redis.call('SETRANGE', key, rest[j], rest[j + 1]) end
  end
end
if not output then
  local count = DETAILS
  if count < 0 then count = 1 + table_words / 2 end
  output = string.rep('\0', 8 * count)
end
return struct.pack('<c8i8i8i8i8i8', ARGV[1], now, status, remaining, retry_after, reset_after) ..
  output
