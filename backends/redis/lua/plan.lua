-- The driver of a plan of several steps, which ends in plan_end.lua: all are decided at one instant,
-- and written only if all allow. KEYS[i]: the key of step i. ARGV[1]: the nonce (8 bytes); ARGV[2i]:
-- the operation's id (1 byte) and six little-endian 64-bit arguments; ARGV[2i+1]: how long the state
-- is kept, in ms.
-- Replies with the nonce, now, and for each step status, remaining, retry_after, reset_after.

local raws = redis.call('MGET', unpack(KEYS))
local reply = struct.pack('<c8i8', ARGV[1], now)
local writes = {}
local all = true

for i = 1, #KEYS do
  local id, a, b, c, d, e, f = struct.unpack('<Bi8i8i8i8i8i8', ARGV[2 * i])
  -- The rows of the table of operations: id, kind of state, rule.
  local KIND, decide
  if id == 0 then KIND, decide = 1, token_bucket_take
  elseif id == 1 then KIND, decide = 1, token_bucket_peek
  end
  -- MGET shows a key of another type as absent: GET tells which it is.
  local raw = raws[i] or redis.pcall('GET', KEYS[i])

