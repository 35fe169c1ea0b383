-- The twin of LeasesRule::release in src/rules/leases.cpp: same names, same order, with the members
-- of LeaseTable in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_release(head, table, now, limit, slot, high, middle, low)
  if limit < 1 or limit > 4503599627370496 or slot < 0 or slot > 4096 or high < 0 or high >= 4503599627370496 or
    middle < 0 or middle >= 4503599627370496 or low < 0 or low >= 16777216 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED leases_base

-- SHARED leases_lapsed

-- SHARED leases_find

  if found == 0 then
    local remaining = limit - used + lapsed
    if remaining < 0 or not (room or count > 0) then remaining = 0 end
    local reset_after = 0
    if live ~= 0 then
      local last = word(8 * tail + 5)
      if last <= at then corrupt() end
      reset_after = last - base
    end
    return 1, remaining, 0, reset_after, struct.pack('<i8', 0)
  end
  if held > used - lapsed then corrupt() end
  if first == tail then
    used, slots, first, tail, free, under, earliest, latest = 0, 0, 0, 0, 0, 0, 0, 0
  else
-- SHARED leases_unlink
    put(8 * found + 3, struct.pack('<i8i8', 0, free)) -- push()
    free, under = found, free
    used = used - held
  end
  put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, latest))
  local remaining = limit - used + lapsed
  if remaining < 0 then remaining = 0 end
  local reset_after = latest - base
  if reset_after < 0 then reset_after = 0 end
  return 1, remaining, 0, reset_after, struct.pack('<i8', 1)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8i8i8i8', 11, 1, leases_release
