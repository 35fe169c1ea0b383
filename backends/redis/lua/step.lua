-- The driver of one step. KEYS[1]: the key. ARGV[1]: the nonce (8 bytes), the operation's arguments, its
-- table, and how long the state is kept, in milliseconds: little-endian 64-bit words. Replies with the nonce and
-- 64-bit words: now, status, remaining, retry_after, reset_after, output words. An error of the server before the first
-- write is returned as it is: nothing was executed. One that redis.call() raises has the script's name behind it, and
-- may come after a write: see error_of() in protocol.cpp.
--@ piece step
--@ use clock
local message, kind = ARGV[1], Operation.kind
local position = 9 -- of the arguments
local created, changed
local status, remaining, retry_after, reset_after, output
--@ if fixed
local new_first, new_second
local raw = redis.pcall('GET', KEYS[1])
--@ use read_fixed
--@ if script
--@ decide
--@ end
if not status then
  status, remaining, retry_after, reset_after, new_first, new_second, output =
    decide(message, position, now, first, second)
end
if new_first then
  local keep = struct.unpack('<i8', message, #message - 7)
  --@ use change_fixed
  local done
  if changed then
    done = redis.pcall('SETRANGE', KEYS[1], '1', changed)
  else
    done = redis.pcall('PSETEX', KEYS[1], string.format('%d', keep), created)
  end
  if type(done) == 'table' and done.err then return done end
end
--@ else
--@ if script
--@ use variable_step
--@ end
key, is_corrupt, front, rest = KEYS[1], false, nil, nil
seen = redis.pcall('GETRANGE', key, '0', '256')
--@ if fast
--@ if script
--@ fast
--@ end
status, remaining, retry_after, reset_after, output, front, renews, rest =
  fast(message, position, now, key, seen)
--@ end
if not status then
  renews = true
  --@ if script
  --@ use words
  --@ decide
  --@ end
  local head_words = Operation.head
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
  local done
  if created then
    done = redis.pcall('PSETEX', key, string.format('%d', struct.unpack('<i8', message, #message - 7)), created)
  else
    if renews then
      local keep = struct.unpack('<i8', message, #message - 7)
      --@ use renew
    end
    done = redis.pcall('SETRANGE', key, '1', changed)
  end
  if type(done) == 'table' and done.err then return done end
  if rest then
    for j = 1, #rest, 2 do
      redis.call('SETRANGE', key, string.format('%d', rest[j]), rest[j + 1])
    end
  end
end
--@ end
--@ if output
if not output then
  local count = Operation.output
  --@ if table
  count = count + (#message - 7 - position - 8 * Operation.argument_count) / 16
  --@ end
  output = string.rep('\0', 8 * count)
end
return struct.pack('<c8i8i8i8i8i8c0', message, now, status, remaining or 0, retry_after or 0,
  reset_after or 0, output)
--@ else
return struct.pack('<c8i8i8i8i8i8', message, now, status, remaining or 0, retry_after or 0,
  reset_after or 0)
--@ end
