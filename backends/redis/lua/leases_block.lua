-- The twin of LeasesRule::block in src/algorithms/leases.cpp: same names, same order, with the members
-- of LeaseBook, enter() and prolong() in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_block(head, table, now, limit, span)
  if limit < 1 or limit > 1125899906842624 or span < 0 or span > 31536000000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED leases_base

-- SHARED leases_lapsed

  -- find(): the place of the live lease with this id, and its words
  local high, middle, low = 0, 0, 16777216 -- block_id
  local found = 0
  local held, next, old, prev, a, b, c, token
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
      held, next, old, prev, a, b, c, token = words(8 * i + 3, 8)
      if b == middle and c == low and held > 0 and old > at then
        found = i
        break
      end
    end
  end

  local ends = at + span
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

  local slot
  if found == 0 then
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
  end

  -- place(): where it belongs in the order of expiry
  local after, before = tail, 0
  if first == 0 or ends >= latest then
    latest = ends
  else
    local other = word(8 * after + 5)
    latest = ends
    if other > ends then latest = other end
    local steps = 0
    while after ~= 0 and after ~= found and other > ends do
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

  if found == 0 then
    put(8 * slot + 3,
      struct.pack('<i8i8i8i8i8i8i8i8', 1125899906842624, before, ends, after, high, middle, low, 0))
    if after ~= 0 then put(8 * after + 4, struct.pack('<i8', slot)) else first, earliest = slot, ends end
    if before ~= 0 then put(8 * before + 6, struct.pack('<i8', slot)) else tail = slot end
    used = used + 1125899906842624 -- block_weight
  elseif after == found then
    put(8 * found + 5, struct.pack('<i8', ends))
  else
    local after_it, before_it = prev, next
    if found == first then
      first, after_it = next, 1
    elseif found == tail then
      tail, before_it = prev, 1
    else
      put(8 * prev + 4, struct.pack('<i8', next))
      put(8 * next + 6, struct.pack('<i8', prev))
    end
    if after_it < 1 or after_it > slots or before_it < 1 or before_it > slots then
      corrupt()
      return 0, 0, 0, 0
    end
    if after ~= 0 then put(8 * after + 4, struct.pack('<i8', found)) else first, earliest = found, ends end
    if before ~= 0 then put(8 * before + 6, struct.pack('<i8', found)) else tail = found end
    put(8 * found + 4, struct.pack('<i8i8i8', before, ends, after))
  end
  put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, latest))
  return 1, 0, 0, latest - base
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8', 11, 0, leases_block
