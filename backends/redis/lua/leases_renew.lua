-- The twin of LeasesRule::renew in src/algorithms/leases.cpp: same names, same order, with the members
-- of LeaseBook in their places.
-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.
local function leases_renew(head, table, now, limit, ttl, slot, high, middle, low)
  if limit < 1 or limit > 4503599627370496 or ttl < 1000 or ttl > 1099511627776 or slot < 0 or
    slot > 4096 or high < 0 or high >= 4503599627370496 or
    middle < 0 or middle >= 4503599627370496 or low < 0 or low >= 16777216 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED leases_base

-- SHARED leases_lapsed

  -- find(): the place of the live lease with this id, and its words
  local found = 0
  local held, next, ends, prev, a, b, c, token
  if slot ~= 0 then
    if slot <= slots then
      held, next, ends, prev, a, b, c, token = words(8 * slot + 3, 8)
      if a == high and b == middle and c == low and held > 0 and ends > at then found = slot end
    end
  else
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
  end

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

  -- place(): where it belongs in the order of expiry
  local after, before = tail, 0
  if ends >= latest then
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

  if after == found then
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
  return 1, remaining, 0, latest - base, struct.pack('<i8i8', token, ends - ahead)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8i8i8i8i8i8', 11, 2, leases_renew
