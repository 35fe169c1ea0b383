-- The twin of LeasesRule::block in src/rules/leases.cpp: same names, same order, with the members
-- of LeaseTable and enter() in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_block(head, table, now, limit, span)
  if limit < 1 or limit > 1125899906842624 or span < 0 or span > 31536000000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED leases_base

-- SHARED leases_lapsed

  local slot, high, middle, low = 0, 0, 0, 16777216 -- block_id
-- SHARED leases_find

  local old = ends
  ends = at + span
  if ends > 4503599627370496 then ends = 4503599627370496 end -- word_limit
  local stands = span == 0 or (found ~= 0 and old >= ends)
  local fits = found ~= 0 or ((room or count > 0) and
    (live == 0 or used + 1125899906842624 <= 4503599627370496)) -- word_limit
  if stands or not fits then
    local remaining, reset_after = limit - used + lapsed, 0
    if remaining < 0 or not (room or count > 0) then remaining = 0 end
    if live ~= 0 then
      local last = word(8 * tail + 5)
      if last <= at then corrupt() end
      reset_after = last - base
    end
    if stands then return 1, remaining, 0, reset_after end
    return 0, remaining, 0, reset_after
  end

  if found == 0 then
-- SHARED leases_pop
  end

-- SHARED leases_place

  if found == 0 then
    put(8 * slot + 3,
      struct.pack('<i8i8i8i8i8i8i8i8', 1125899906842624, before, ends, after, high, middle, low, 0))
    if after ~= 0 then put(8 * after + 4, struct.pack('<i8', slot)) else first, earliest = slot, ends end
    if before ~= 0 then put(8 * before + 6, struct.pack('<i8', slot)) else tail = slot end
    used = used + 1125899906842624 -- block_weight
  else
-- SHARED leases_prolong
  end
  put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, latest))
  return 1, 0, 0, latest - base
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8', 11, 0, leases_block
