--@ piece clock
-- The server's clock, in microseconds. It is read once in a script: every step sees one instant.
local time = redis.pcall('TIME')
if time.err then return time end
local now = time[1] * 1000000 + time[2]
