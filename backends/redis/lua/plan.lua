-- The driver of a plan of steps on cells, which ends in plan_end.lua: all are decided at one instant,
-- and written only if all allow. Messages and replies are those of mixed.lua, which takes any steps.
local keys, args, pack = KEYS, ARGV, struct.pack
local raws = redis.call('MGET', unpack(keys))
local reply, told = pack('<c8i8', args[1], now), ''
local writes, in_places = {}, {}
local all = true
local last, KIND, ARGUMENTS, DETAILS, none, decide

for i = 1, #keys do
  local step = args[2 * i]
  local id = string.byte(step)
  if id ~= last then
    last = id
    KIND, ARGUMENTS, DETAILS, none, decide = rule(id)
  end
  local status
  local keep = args[2 * i + 1]
  -- MGET shows a key of another type as absent: GET tells which it is.
  local raw = raws[i] or redis.pcall('GET', keys[i])

