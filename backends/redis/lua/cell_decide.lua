-- In the driver of one step on a cell, for a rule that may have output words: decides.
local remaining, retry_after, reset_after, new_first, new_second, output = 0, 0, 0
if not status then
  status, remaining, retry_after, reset_after, new_first, new_second, output =
    decide(first, second, now, struct.unpack(ARGUMENTS, ARGV[1], 9))
end
