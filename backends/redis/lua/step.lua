-- The driver of one step, which ends in step_end.lua. KEYS[1]: the key. ARGV[1]: the nonce (8 bytes)
-- and six little-endian 64-bit arguments; ARGV[2]: how long the state is kept, in milliseconds.
-- Replies with the nonce and five 64-bit words: now, status, remaining, retry_after, reset_after.
local raw = redis.pcall('GET', KEYS[1])

