
-- What the short cut has left over goes on as any step on a cell. Behind the arguments in its message
-- stands the time to live, in digits, as the server takes it.
local raw = redis.pcall('GET', KEYS[1])
local status
ARGV[2] = string.sub(ARGV[1], 4 * #ARGUMENTS + 5)
