-- In a driver: from `raw`, what GET gave, to the two words of a state of kind KIND, zeros if there
-- is none; or to a status, if this is no such state: of a state of another kind with that kind, in
-- steps of 256. An error of the server's own ends the script.
local found, first, second = KIND, 0, 0
if raw then
  if #raw ~= STATE_BYTES and #raw ~= 17 then -- so is the table that an error comes as
    if type(raw) == 'table' and string.sub(raw.err, 1, 9) ~= 'WRONGTYPE' then return raw end
    status = -15 -- Errc::wrong_type
    if type(raw) == 'string' and #raw % 8 == 1 then -- perhaps a state of many words
      found = struct.unpack('<B', raw)
      if found < 32 and found ~= KIND then status = -256 * found + -16 end -- Errc::wrong_kind
    end
  else
    found, first, second = struct.unpack('<Bi8i8', raw)
    if found ~= KIND then
      status = -15 -- Errc::wrong_type
      if found < 32 then status = -256 * found + -16 end -- Errc::wrong_kind
    elseif first < 0 or first > WORD_LIMIT or second < 0 or second > WORD_LIMIT then
      status = -17 -- Errc::corrupt_state
    end
  end
end

