-- What a rule over a wide state uses. A wide state is one byte, its kind, and any number of
-- little-endian 64-bit words from 0 to 2^52, counted from 0; those behind its end count as zero. It
-- is read and written in pieces, never as a whole.
local WORDS = '<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8'
local key -- of the step in hand, and so are:
local seen -- its kind and its first 32 words, as far as there are any
local is_corrupt
local front -- what is to be written from word 0 on
local rest -- and elsewhere: offset in bytes, words in bytes, and so on

-- Says that the words of the state contradict each other.
local function corrupt() is_corrupt = true end

-- Words i to i + n - 1, as bytes.
local function bytes(i, n)
  local raw
  if i + n <= 32 then
    raw = string.sub(seen, 8 * i + 2, 8 * (i + n) + 1)
  else
    raw = redis.call('GETRANGE', key, 8 * i + 1, 8 * (i + n))
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
    raw = redis.call('GETRANGE', key, 8 * i + 1, 8 * i + 8)
  end
  if #raw == 8 then
    local value = struct.unpack('<i8', raw)
    if value >= 0 and value <= 4503599627370496 then return value end -- word_limit
  end
  if raw ~= '' then is_corrupt = true end
  return 0
end

-- Words i to i + n - 1, as n values. REQUIRES: n <= 8.
local function words(i, n)
  local values = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * n), bytes(i, n))}
  for j = 1, n do
    if values[j] < 0 or values[j] > 4503599627370496 then -- word_limit
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

