-- The driver of a plan: all steps are decided at one instant, and written only if all allow. KEYS[i]: the key of
-- step i, then that of the record, if there is one. ARGV[1]: the nonce (8 bytes), and what record.lua reads;
-- ARGV[i + 1]: the operation's id (1 byte), its arguments, its table, and how long the state is kept, in
-- milliseconds: little-endian 64-bit words. Replies with the nonce and 64-bit words: now, for each step status,
-- remaining, retry_after, reset_after, and then the output words of all steps.
--@ piece plan
--@ use clock
--@ if record
local steps = #KEYS - 1
--@ use read_record
--@ else
local steps = #KEYS
--@ end
--@ if variable
--@ if script
--@ use variable_step
--@ use words
--@ end
--@ else
local raws = redis.pcall('MGET', unpack(KEYS, 1, steps))
if raws.err then return raws end
--@ end
local pack, unpack_words = struct.pack, struct.unpack
--@ if fast_plan
--@ fast_plan
--@ end
--@ if script
local function operation(id)
  --@ operations
end
--@ end
local verdicts, outputs, all, in_place = '', '', true, false
local creates, changes = {}, {}
--@ if variable
local renewals, rests = {}, {}
--@ end
local last, kind, argument_count, output_count, head_words, decide, fast
local position = 2 -- of the arguments

for i = 1, steps do
  local message = ARGV[i + 1]
  local id = string.byte(message)
  if id ~= last then
    last = id
    kind, argument_count, output_count, head_words, decide, fast = operation(id)
  end
  local status, remaining, retry_after, reset_after, output
  local created, changed
  --@ if fixed
  if not head_words then
    --@ if variable
    local raw = redis.pcall('GET', KEYS[i])
    --@ else
    -- MGET shows a key of another type as absent: GET tells which it is.
    local raw = raws[i] or redis.pcall('GET', KEYS[i])
    --@ end
    local new_first, new_second
    --@ use read_fixed
    if not status then
      status, remaining, retry_after, reset_after, new_first, new_second, output =
        decide(message, position, now, first, second)
    end
    if new_first then
      local keep = unpack_words('<i8', message, #message - 7)
      --@ use change_fixed
    end
  end
  --@ end
  --@ if variable
  if head_words then
    key, is_corrupt, front, rest = KEYS[i], false, nil, nil
    seen = redis.pcall('GETRANGE', key, '0', '256')
    if fast then
      status, remaining, retry_after, reset_after, output, front, renews, rest =
        fast(message, position, now, key, seen)
    end
    if not status then
      renews = true
      --@ use read_head
      if not status then
        status, remaining, retry_after, reset_after, output = decide(message, position, now, head)
        if is_corrupt then
          status, remaining, retry_after, reset_after, output = Errc.corrupt_state, 0, 0, 0, nil
        end
      end
    end
    if status == 1 and front then
      --@ use change_variable
      renewals[i], rests[i] = renews, rest
    end
  end
  --@ end
  creates[i], changes[i] = created, changed
  if changed then in_place = true end
  all = all and status == 1
  verdicts = verdicts ..
    pack('<i8i8i8i8', status, remaining or 0, retry_after or 0, reset_after or 0)
  if output then
    outputs = outputs .. output
  elseif output_count ~= 0 then
    local count = output_count
    if count > 255 then count = count - 256 + (#message - 7 - position - 8 * argument_count) / 16 end -- one per window
    outputs = outputs .. string.rep('\0', 8 * count)
  end
end

if all then
  --@ if variable
  for i = 1, steps do
    local key = KEYS[i]
    if renewals[i] and changes[i] then
      local keep = unpack_words('<i8', ARGV[i + 1], #ARGV[i + 1] - 7)
      --@ use renew
    end
  end
  --@ end
  -- A plan that writes by both commands asks for the right to the second one before it uses the first.
  local may = redis.acl_check_cmd -- Redis 7.0
  if in_place and may then
    for i = 1, #KEYS do
      if (creates[i] or i > steps) and not may('PSETEX', KEYS[i], '1', '') then
        return {err = 'NOPERM the user may not run PSETEX'}
      end
    end
  end
  local write = redis.pcall -- the first; an error of a later one ends the script
  for i = 1, steps do
    local key, changed = KEYS[i], changes[i]
    if changed then
      local done = write('SETRANGE', key, '1', changed)
      if type(done) == 'table' then return done end
      write = redis.call
      --@ if variable
      local pieces = rests[i]
      if pieces then
        for j = 1, #pieces, 2 do
          redis.call('SETRANGE', key, string.format('%d', pieces[j]), pieces[j + 1])
        end
      end
      --@ end
    end
  end
  for i = 1, steps do
    if creates[i] then
      local keep = unpack_words('<i8', ARGV[i + 1], #ARGV[i + 1] - 7)
      local done = write('PSETEX', KEYS[i], string.format('%d', keep), creates[i])
      if done.err then return done end
      write = redis.call
    end
  end
  --@ if record
  --@ use write_record
  --@ end
end
return struct.pack('<c8i8', ARGV[1], now) .. verdicts .. outputs
