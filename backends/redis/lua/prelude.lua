-- What every script starts with: the codes of Errc, and the state under a key.

local INVALID_COST, COST_EXCEEDS_CAPACITY = -2, -1
local WRONG_TYPE, WRONG_KIND, CORRUPT_STATE = -15, -16, -17
local WORD_LIMIT = 4503599627370496 -- 2^52

-- A state is one byte, its kind, and two little-endian 64-bit words.
local STATE, STATE_BYTES = '<Bi8i8', 17

-- Returns the two words under the key (zeros if absent), or nil and a status, or nil, nil and the
-- server's own error.
local function load_state(key, kind)
  local raw = redis.pcall('GET', key)
  if not raw then return 0, 0 end
  if type(raw) == 'table' then
    if string.sub(raw.err, 1, 9) == 'WRONGTYPE' then return nil, WRONG_TYPE end
    return nil, nil, raw
  end
  if #raw ~= STATE_BYTES then return nil, WRONG_TYPE end
  local found, first, second = struct.unpack(STATE, raw)
  if found ~= kind then return nil, found < 32 and WRONG_KIND or WRONG_TYPE end
  if first < 0 or first > WORD_LIMIT or second < 0 or second > WORD_LIMIT then
    return nil, CORRUPT_STATE
  end
  return first, second
end
