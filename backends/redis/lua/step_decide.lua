-- In the driver of one step on a cell, for a rule without output words: decides.
local remaining, retry_after, reset_after, new_first, new_second = 0, 0, 0
if not status then
  status, remaining, retry_after, reset_after, new_first, new_second =
    decide(first, second, now, struct.unpack(ARGUMENTS, ARGV[1], 9))
end
