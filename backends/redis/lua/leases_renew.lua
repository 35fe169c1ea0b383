-- The twin of LeasesRule::renew in src/rules/leases.cpp: same names, same order, with the members
-- of LeaseTable in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_renew(head, table, now, limit, ttl, slot, high, middle, low)
  if limit < 1 or limit > 4503599627370496 or ttl < 1000 or ttl > 1099511627776 or slot < 0 or
    slot > 4096 or high < 0 or high >= 4503599627370496 or
    middle < 0 or middle >= 4503599627370496 or low < 0 or low >= 16777216 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED leases_base

-- SHARED leases_lapsed

-- SHARED leases_find

  local remaining = limit - used + lapsed
  if remaining < 0 or not (room or count > 0) then remaining = 0 end
  local is_changed = false
  local old = ends
  if found ~= 0 then
    ends = at + ttl
    if ends > 4503599627370496 then ends = 4503599627370496 end -- word_limit
    is_changed = ends > old
  end
  if not is_changed then
    local reset_after = 0
    if live ~= 0 then
      local last = word(8 * tail + 5)
      if last <= at then corrupt() end
      reset_after = last - base
    end
    if found == 0 then return 0, remaining, 0, reset_after, struct.pack('<i8i8', 0, 0) end
    return 1, remaining, 0, reset_after, struct.pack('<i8i8', token, old - ahead)
  end

-- SHARED leases_place

-- SHARED leases_prolong
  put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, latest))
  return 1, remaining, 0, latest - base, struct.pack('<i8i8', token, ends - ahead)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8i8i8i8i8', 11, 2, leases_renew
