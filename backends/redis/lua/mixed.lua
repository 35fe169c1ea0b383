-- The driver of a plan of any steps: all are decided at one instant, and written only if all allow.
-- KEYS[i]: the key of step i, then that of the record, if there is one. ARGV[1]: the nonce (8
-- bytes); ARGV[2i]: the rule's id (1 byte), its arguments and its table, little-endian 64-bit
-- words; ARGV[2i+1]: how long the state is kept, in ms.
-- Replies with the nonce and 64-bit words: now, for each step status, remaining, retry_after,
-- reset_after, and then the output words of all steps.

local verdicts, told = '', ''
local writes, in_places, fresh_keys, rests = {}, {}, {}, {}
local all = true
local last, KIND, ARGUMENTS, DETAILS, HEAD, decide

for i = 1, steps do
  local step = ARGV[2 * i]
  local id = string.byte(step)
  if id ~= last then
    last = id
    KIND, ARGUMENTS, DETAILS, HEAD, decide = rule(id)
  end
  local table_at = 4 * #ARGUMENTS - 2 -- behind two characters of format, eight bytes, each argument
  local table_words = (#step + 1 - table_at) / 8
  local status
  local remaining, retry_after, reset_after, output = 0, 0, 0
  if not HEAD then
    local raw = redis.pcall('GET', KEYS[i])
    local keep = ARGV[2 * i + 1]

