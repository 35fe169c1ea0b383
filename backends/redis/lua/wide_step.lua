-- The driver of one step on a wide state, which ends in wide_end.lua. KEYS[1]: the key. ARGV[1]: the
-- nonce (8 bytes), the rule's arguments and its table, little-endian 64-bit words; ARGV[2]: how long
-- the state is kept, in milliseconds.
-- Replies with the nonce and 64-bit words: now, status, remaining, retry_after, reset_after, output words.
key, is_corrupt, front, rest = KEYS[1], false, nil, nil
seen = redis.pcall('GETRANGE', key, '0', '256')
local status
