-- The driver of one step. KEYS[1]: the key. ARGV[1]: the nonce (8 bytes) and six little-endian
-- 64-bit arguments; ARGV[2]: how long the state is kept, in milliseconds.
-- Replies with the nonce and five 64-bit words: now, status, remaining, retry_after, reset_after.
local nonce, a, b, c, d, e, f = struct.unpack('<c8i8i8i8i8i8i8', ARGV[1])
local first, second, fault = load_state(KEYS[1], KIND)
if fault then return fault end
local now = clock()
local status, remaining, retry_after, reset_after, new_first, new_second = second, 0, 0, 0
if first then
  status, remaining, retry_after, reset_after, new_first, new_second =
    decide(first, second, now, a, b, c, d, e, f)
  if new_first then
    redis.call('SET', KEYS[1], struct.pack(STATE, KIND, new_first, new_second), 'PX', ARGV[2])
  end
end
return nonce .. struct.pack('<i8i8i8i8i8', now, status, remaining, retry_after, reset_after)
