-- The end of the driver of one step on a cell, for a rule that may have details: decides, writes if
-- that changes the state, and replies.
local remaining, retry_after, reset_after, new_first, new_second, details = 0, 0, 0
if not status then
  status, remaining, retry_after, reset_after, new_first, new_second, details =
    decide(first, second, now, struct.unpack(ARGUMENTS, ARGV[1], 9))
  if new_first then
    redis.call('PSETEX', KEYS[1], ARGV[2], struct.pack(STATE, KIND, new_first, new_second))
  end
end
return struct.pack('<c8i8i8i8i8i8', ARGV[1], now, status, remaining, retry_after, reset_after) ..
  (details or string.rep('\0', 8 * DETAILS))
