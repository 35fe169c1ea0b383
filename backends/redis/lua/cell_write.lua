  -- In a driver, behind decide(): what is to be written, if anything is: `packed`, the two words alone
  -- if `in_place`, else the whole state, with a time to live of `keep` ms. A key that was given as
  -- long a life within the last half second keeps it: a second was added to each, and setting one costs
  -- the server more than the words do.
  local packed, in_place
  if new_first then
    local expires = now + 1000 * keep
    local before = raw and #raw == STATE_BYTES and struct.unpack('<i8', raw, 18)
    in_place = before and before <= expires and before > expires - 500000
    if in_place then
      packed = struct.pack('<i8i8', new_first, new_second)
    else
      packed = struct.pack(STATE, KIND, new_first, new_second, expires)
    end
  end
