
-- What the short cut has left over goes on as any step on a wide state. The last word of its message
-- is the time to live.
local status
key, is_corrupt, front, rest = KEYS[1], false, nil, nil
seen = redis.pcall('GETRANGE', key, '0', '256')
ARGV[2] = string.format('%d', struct.unpack('<i8', ARGV[1], #ARGV[1] - 7))
ARGV[1] = string.sub(ARGV[1], 1, -9)
