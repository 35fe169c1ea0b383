-- The driver of a plan of several steps: all are decided at one instant, and written only if all
-- allow. KEYS[i]: the key of step i. ARGV[1]: the nonce (8 bytes); ARGV[2i]: the operation's id
-- (1 byte) and six little-endian 64-bit arguments; ARGV[2i+1]: how long the state is kept, in ms.
-- Replies with the nonce, now, and for each step status, remaining, retry_after, reset_after.

-- The rows of the table of operations: id = {kind of state, rule}.
local OPERATIONS = {
  [0] = {1, token_bucket_take},
  [1] = {1, token_bucket_peek},
}

local now = clock()
local reply = {ARGV[1], struct.pack('<i8', now)}
local writes = {}
local all = true

for i = 1, #KEYS do
  local id, a, b, c, d, e, f = struct.unpack('<Bi8i8i8i8i8i8', ARGV[2 * i])
  local kind, decide = OPERATIONS[id][1], OPERATIONS[id][2]
  local first, second, fault = load_state(KEYS[i], kind)
  if fault then return fault end
  local status, remaining, retry_after, reset_after, new_first, new_second = second, 0, 0, 0
  if first then
    status, remaining, retry_after, reset_after, new_first, new_second =
      decide(first, second, now, a, b, c, d, e, f)
    if new_first then writes[i] = struct.pack(STATE, kind, new_first, new_second) end
  end
  all = all and status == 1
  reply[i + 2] = struct.pack('<i8i8i8i8', status, remaining, retry_after, reset_after)
end

if all then
  for i = 1, #KEYS do
    if writes[i] then redis.call('SET', KEYS[i], writes[i], 'PX', ARGV[2 * i + 1]) end
  end
end
return table.concat(reply)
