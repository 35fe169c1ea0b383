-- The twin of LeasesRule::acquire in src/algorithms/leases.cpp: same names, same order, with the members
-- of LeaseBook in their places.
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
    -- find(): the place of the live lease with this id, and its words
    local found = 0
    local held, next, ends, prev, a, b, c, token
    local raw -- the words of 32 places
    for i = 1, slots do
      local offset = (i - 1) % 32
      if offset == 0 then
        local many = slots - i + 1
        if many > 32 then many = 32 end
        raw = bytes(8 * i + 3, 8 * many)
      end
      local begin = struct.unpack('<i8', raw, 64 * offset + 33)
      if begin < 0 or begin > 4503599627370496 then corrupt() end -- word_limit
      if begin == high then
        held, next, ends, prev, a, b, c, token = words(8 * i + 3, 8)
        if b == middle and c == low and held > 0 and ends > at then
          found = i
          break
        end
      end
    end
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

  -- reclaim()
  if live == 0 then
    used, slots, first, tail, free, under, earliest, latest = 0, 0, 0, 0, 0, 0, 0, 0
    lapsed, count = 0, 0
  else
    if expiry ~= 0 then earliest = expiry end
    if count > 0 then
      local taken, old, slot = count, free, first
      if taken > 16 then taken = 16 end -- max_reclaimed
      free, under = slot, old
      for i = 1, taken do
        local held, next = words(8 * slot + 3, 2)
        used, lapsed = used - held, lapsed - held
        if i == taken then next, held = old, next else held = next end
        put(8 * slot + 3, struct.pack('<i8i8', 0, next))
        slot = held
        if i == 1 and taken > 1 then under = slot end
      end
      first, count = slot, count - taken
      if count > 0 then earliest = 0 end
    end
  end

  -- pop()
  local slot
  if free == 0 then
    slots = slots + 1
    slot = slots
  else
    slot = free
    if under == 4097 then free = word(8 * slot + 4) else free = under end -- unread
    if free > slots then corrupt() end
    under = 0
    if free ~= 0 then under = 4097 end
  end

  local ends = at + ttl
  if ends > 4503599627370496 then ends = 4503599627370496 end -- word_limit

  -- place(): where it belongs in the order of expiry
  local after, before = tail, 0
  if first == 0 or ends >= latest then
    latest = ends
  else
    local other = word(8 * after + 5)
    latest = ends
    if other > ends then latest = other end
    local steps = 0
    while after ~= 0 and other > ends do
      if steps == slots then
        corrupt()
        return 0, 0, 0, 0
      end
      steps, before = steps + 1, after
      if after == first then
        after = 0
      else
        after = word(8 * after + 6)
        if after < 1 or after > slots then
          corrupt()
          return 0, 0, 0, 0
        end
        other = word(8 * after + 5)
      end
    end
  end

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
