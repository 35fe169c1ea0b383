--@ piece variable_step
-- A variable state is one byte, its kind, and any number of little-endian words from 0 to 2^52, counted from
-- 0; those behind its end count as zero. It is read and written in pieces. Of the step in hand:
local key
local seen -- the kind and the first 32 words, as far as there are any
local is_corrupt -- the words of the state contradict each other
local front -- what is to be written from word 0 on
local rest -- and elsewhere: offset in bytes, words in bytes, and so on
local renews -- the key's life is prolonged when `front` is written

--@ piece words
-- How a rule reads and writes a variable state.
local WORDS = '<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8'

-- Words i to i + n - 1, as bytes.
local function bytes(i, n)
  local raw
  if i + n <= 32 then
    raw = string.sub(seen, 8 * i + 2, 8 * (i + n) + 1)
  else
    raw = redis.call('GETRANGE', key, string.format('%d', 8 * i + 1), string.format('%d', 8 * (i + n)))
  end
  if #raw == 8 * n then return raw end
  if #raw % 8 ~= 0 then is_corrupt = true end
  return string.sub(raw .. string.rep('\0', 8 * n), 1, 8 * n)
end

-- Word i. A word that no rule can have written counts as zero, and the state as corrupt.
local function word(i)
  local raw
  if i < 32 then
    raw = string.sub(seen, 8 * i + 2, 8 * i + 9)
  else
    raw = redis.call('GETRANGE', key, string.format('%d', 8 * i + 1), string.format('%d', 8 * i + 8))
  end
  if #raw == 8 then
    local value = struct.unpack('<i8', raw)
    if value >= 0 and value <= word_limit then return value end
  end
  if raw ~= '' then is_corrupt = true end
  return 0
end

-- Words i to i + n - 1, as n values. REQUIRES: n <= 8.
local function words(i, n)
  local values = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * n), bytes(i, n))}
  for j = 1, n do
    if values[j] < 0 or values[j] > word_limit then
      is_corrupt, values[j] = true, 0
    end
  end
  return unpack(values, 1, n)
end

-- Writes packed words from word i on, once every step has allowed. REQUIRES: some put of the step is
-- of word 0, if any is made.
local function put(i, packed)
  if i == 0 then
    front = packed
  else
    rest = rest or {}
    rest[#rest + 1] = 8 * i + 1
    rest[#rest + 1] = packed
  end
end

--@ piece read_head
-- From `seen` to `head`, the first `head_words` words of a state of kind `kind`, at most 32, zeros if there is
-- none; or to a status, if this is no such state. A torn word behind them is left to the rule.
local head
if seen ~= '' and #seen % 8 ~= 1 and #seen <= 8 * head_words then -- so is the table that an error comes as
  if type(seen) == 'table' and string.sub(seen.err, 1, 9) ~= 'WRONGTYPE' then return seen end
  status = Errc.wrong_type
elseif seen ~= '' and string.byte(seen) ~= kind then
  status = Errc.wrong_type
  local found = string.byte(seen)
  if found < 32 then status = -256 * found + Errc.wrong_kind end
else
  local raw = seen
  if #raw <= 8 * head_words then raw = raw .. string.rep('\0', 8 * head_words + 1 - #raw) end
  head = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * head_words), raw, 2)}
  for j = 1, head_words do
    if head[j] < 0 or head[j] > word_limit then status = Errc.corrupt_state end
  end
end

--@ piece change_variable
-- From what the rule put to what is to be written: as of a fixed state, or `changed` and `rest`. A new state is whole:
-- one command writes it, or none.
if seen == '' then
  created = struct.pack('<B', kind) .. front
  if rest then
    for j = 1, #rest, 2 do
      local offset, piece = rest[j], rest[j + 1]
      if #created < offset then created = created .. string.rep('\0', offset - #created) end
      created = string.sub(created, 1, offset) .. piece .. string.sub(created, offset + #piece + 1)
    end
    rest = nil
  end
else
  changed = front
end

--@ piece renew
-- Prolongs the key's life, first: a right that is missing shows before anything is written.
local life = string.format('%d', keep)
local renewed = redis.pcall('PEXPIRE', key, life, 'GT')
if renewed == 0 then -- longer, or taken away
  renewed = redis.pcall('PEXPIRE', key, life, 'NX')
end
if type(renewed) == 'table' then return renewed end
