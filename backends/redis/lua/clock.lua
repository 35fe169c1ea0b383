--@ piece clock
-- The server's clock, in microseconds. It is read once in a script: every step sees one instant.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
