-- The twin of LeasesRule::acquire in src/rules/leases.cpp: same names, same order, with the members
-- of LeaseTable in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_acquire(head, table, now, limit, weight, ttl, tier, seek, high, middle, low)
  if limit < 1 or limit > 4503599627370496 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if weight < 1 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if weight > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if ttl < 1000 or ttl > 1099511627776 or tier < 0 or tier > 15 or (seek ~= 0 and seek ~= 1) or
    high < 0 or high >= 4503599627370496 or
    middle < 0 or middle >= 4503599627370496 or low < 0 or low >= 16777216 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED leases_base

  if seek == 1 then
    local slot = 0
-- SHARED leases_find
    if found ~= 0 then
-- SHARED leases_lapsed
      local remaining = limit - used + lapsed
      if remaining < 0 or not (room or count > 0) then remaining = 0 end
      local reset_after = 0
      if live ~= 0 then
        local last = word(8 * tail + 5)
        if last <= at then corrupt() end
        reset_after = last - base
      end
      return 1, remaining, 0, reset_after, struct.pack('<i8i8i8i8', tier, found, token, ends - ahead)
    end
  end

  -- lapsed(): what has lapsed together, and the first to live on
  local room = free ~= 0 or slots < 4096 -- max_holders
  local lapsed, count, live, expiry = 0, 0, first, 0
  if first ~= 0 and (at >= earliest or stepped) then
    if at >= latest then
      lapsed, count, live = used, slots, 0
    else
      local held, next
      held, next, expiry = words(8 * live + 3, 3)
      while live ~= 0 and (expiry <= at or
        (stepped and (used - lapsed + weight > limit or not (room or count > 0)))) do
        local left, last = used - lapsed, live == tail
        if held == 0 or held > left or (held == left) ~= last or count == slots or
          (not last and (next < 1 or next > slots)) then
          corrupt()
          return 0, 0, 0, 0
        end
        lapsed, count = lapsed + held, count + 1
        if last then
          live, expiry = 0, 0
        else
          live = next
          held, next, expiry = words(8 * live + 3, 3)
        end
      end
    end
  end

  if used - lapsed + weight > limit or not (room or count > 0) then
    local remaining = limit - used + lapsed
    if remaining < 0 or not (room or count > 0) then remaining = 0 end
    local reset_after = 0
    if live ~= 0 then
      local last = word(8 * tail + 5)
      if last <= at then corrupt() end
      reset_after = last - base
    end
    local till = base
    if live ~= 0 then
      local held, next
      held, next, expiry = words(8 * live + 3, 3)
      while live ~= 0 and (used - lapsed + weight > limit or not (room or count > 0)) do
        till = expiry
        local left, last = used - lapsed, live == tail
        if expiry <= at or held == 0 or held > left or (held == left) ~= last or count == slots or
          (not last and (next < 1 or next > slots)) then
          corrupt()
          return 0, 0, 0, 0
        end
        lapsed, count = lapsed + held, count + 1
        if last then
          live, expiry = 0, 0
        else
          live = next
          held, next, expiry = words(8 * live + 3, 3)
        end
      end
    end
    return 0, remaining, till - base, reset_after, struct.pack('<i8i8i8i8', tier, 0, 0, 0)
  end

  local slot
-- SHARED leases_pop

  local ends = at + ttl
  if ends > 4503599627370496 then ends = 4503599627370496 end -- word_limit

  local found = 0 -- none moves
-- SHARED leases_place

  if now > fence then fence = now else fence = fence + 1 end
  if fence > 4503599627370496 or used > 4503599627370496 - weight then corrupt() end -- word_limit
  put(8 * slot + 3,
    struct.pack('<i8i8i8i8i8i8i8i8', weight, before, ends, after, high, middle, low, fence))
  if after ~= 0 then put(8 * after + 4, struct.pack('<i8', slot)) else first, earliest = slot, ends end
  if before ~= 0 then put(8 * before + 6, struct.pack('<i8', slot)) else tail = slot end
  used = used + weight
  put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, latest))
  local remaining = limit - used + lapsed
  if remaining < 0 or not (free ~= 0 or slots < 4096 or count > 0) then remaining = 0 end
  return 1, remaining, 0, latest - base, struct.pack('<i8i8i8i8', tier, slot, fence, ends - ahead)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8i8i8i8i8i8i8', 11, 4, leases_acquire
