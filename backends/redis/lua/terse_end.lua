
-- What the short cut has left over goes on as any step on a cell. The last word of its message is
-- the time to live.
local raw = redis.pcall('GET', KEYS[1])
local status
local keep = string.format('%d', struct.unpack('<i8', ARGV[1], #ARGV[1] - 7))
