-- The twin of LeasesRule::peek in src/rules/leases.cpp: same names, same order, with the members
-- of LeaseTable in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_peek(head, table, now, limit, weight, tier)
  if limit < 1 or limit > 4503599627370496 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if weight < 1 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if weight > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if tier < 0 or tier > 15 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  local used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest = unpack(head)
  if slots > 4096 or first > slots or tail > slots or free > slots or -- max_holders
    (under > slots and under ~= 4097) or (first == 0) ~= (tail == 0) or -- unread
    (first == 0 and (used ~= 0 or slots ~= 0)) then
    corrupt()
    return 0, 0, 0, 0
  end
  local base = now + ahead
  if base > 4503599627370496 then base = 4503599627370496 end -- word_limit
  local stepped = stamp > base + 60000000 -- max_ahead, us
  if stepped then base = stamp end
  local at = base
  if stamp > at then at = stamp end

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
    return 0, remaining, till - base, reset_after, struct.pack('<i8', tier)
  end

  local remaining = limit - used + lapsed
  if remaining < 0 or not (room or count > 0) then remaining = 0 end
  local reset_after = 0
  if live ~= 0 then
    local last = word(8 * tail + 5)
    if last <= at then corrupt() end
    reset_after = last - base
  end
  return 1, remaining, 0, reset_after, struct.pack('<i8', tier)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8i8', 11, 1, leases_peek
