-- The server's clock, in microseconds. Read once per script: every step sees one instant.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

