--@ piece read_fixed
-- From `raw`, what GET gave, to the two words of a fixed state of kind `kind`, `first` and `second`, zeros if
-- there is none; or to a status, if this is no such state: of a state of another kind with that kind, in
-- steps of 256. A fixed state is one byte, its kind, two little-endian words from 0 to 2^52, and when the
-- key expires, in microseconds of the server's clock: `before`. The last may be missing: then nobody knows.
-- An error of the server's own ends the script.
local first, second, before = 0, 0, nil
if raw then
  if #raw ~= 25 and #raw ~= 17 then -- so is the table that an error comes as
    if type(raw) == 'table' and string.sub(raw.err, 1, 9) ~= 'WRONGTYPE' then return raw end
    status = Errc.wrong_type
    if type(raw) == 'string' and #raw % 8 == 1 then -- perhaps a state of many words
      local found = string.byte(raw)
      if found < 32 and found ~= kind then status = -256 * found + Errc.wrong_kind end
    end
  else
    local found
    if #raw == 25 then
      found, first, second, before = struct.unpack('<Bi8i8i8', raw)
    else
      found, first, second = struct.unpack('<Bi8i8', raw)
    end
    if found ~= kind then
      status = Errc.wrong_type
      if found < 32 then status = -256 * found + Errc.wrong_kind end
    elseif first < 0 or first > word_limit or second < 0 or second > word_limit then
      status = Errc.corrupt_state
    end
  end
end

--@ piece change_fixed
-- From the words of a new state to what is to be written: `changed`, the two words alone, or `created`, the
-- whole state with a time to live of `keep` ms. A key that lives longer keeps its life, since its state may
-- have been written before the clock was set back; so does one that was given as long a life within the last
-- half second: a second was added to each, and to set one costs the server more than the words do. A time
-- from 2^53 on is none that was ever set.
local expires = now + 1000 * keep
if before and before > expires - 500000 and before < 2 * word_limit then
  changed = struct.pack('<i8i8', new_first, new_second)
else
  created = struct.pack('<Bi8i8i8', kind, new_first, new_second, expires)
end
