-- The driver of one step on a cell, which ends in step_end.lua or cell_end.lua. KEYS[1]: the key.
-- ARGV[1]: the nonce (8 bytes) and the rule's arguments, little-endian 64-bit words; ARGV[2]: how
-- long the state is kept, in milliseconds.
-- Replies with the nonce and 64-bit words: now, status, remaining, retry_after, reset_after, output words.
local raw = redis.pcall('GET', KEYS[1])
local status
local keep = ARGV[2]
