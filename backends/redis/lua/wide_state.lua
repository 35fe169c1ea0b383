-- In a driver: from `seen`, the front of a state as GETRANGE gave it, to `head`, its first HEAD words,
-- at most 32, zeros if there are none; or to a status, if this is no state of kind KIND. A torn word
-- behind them is left to the rule. An error of the server's own ends the script.
local raw, head = seen, nil
local fresh = raw == ''
if not fresh and #raw % 8 ~= 1 and #raw <= 8 * HEAD then -- so is the table that an error comes as
  if type(raw) == 'table' and string.sub(raw.err, 1, 9) ~= 'WRONGTYPE' then return raw end
  status = -15 -- Errc::wrong_type
elseif not fresh and string.byte(raw) ~= KIND then
  status = -15 -- Errc::wrong_type
  local found = string.byte(raw)
  if found < 32 then status = -256 * found + -16 end -- Errc::wrong_kind
else
  if #raw <= 8 * HEAD then raw = raw .. string.rep('\0', 8 * HEAD + 1 - #raw) end
  head = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * HEAD), raw, 2)}
  for j = 1, HEAD do
    local value = head[j]
    if value < 0 or value > 4503599627370496 then -- word_limit
      status = -17 -- Errc::corrupt_state
    end
  end
end

