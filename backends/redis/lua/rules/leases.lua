-- The words of place s start at 8 * s + 3: weight, next, expiry, prev, id (3), fence.

--@ piece leases_id
-- The twin of valid_id() in src/rules/leases.cpp, in its place in a rule.
  if high < 0 or high >= word_limit or middle < 0 or middle >= word_limit or low < 0 or low >= Rule.block_id then
    return Errc.invalid_argument
  end

--@ piece leases_known
-- What release and renew are asked, in its place in a rule.
  if limit < 1 or limit > word_limit or slot < 0 or slot > Rule.max_holders then return Errc.invalid_argument end
--@ use leases_id

--@ piece leases_head
-- The twin of the beginning of LeaseTable in src/rules/lease_table.hpp in its place in a rule: the words of the front.
  local used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest = unpack(head)
  if slots > Rule.max_holders or first > slots or tail > slots or free > slots or
    (under > slots and under ~= Rule.unread) or (first == 0) ~= (tail == 0) or
    (first == 0 and (used ~= 0 or slots ~= 0)) then
    return Errc.corrupt_state
  end

--@ piece leases_write
-- The twin of LeaseTable::write() in src/rules/lease_table.hpp in its place in a rule.
  put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', used, at, ahead, fence, slots, first, tail, free,
    under, earliest, latest))

--@ piece leases_base
-- The words of the front, and the time that the leases live by.
--@ use leases_head
  local base = now + ahead
  if base > word_limit then base = word_limit end
  local stepped = stamp > base + Rule.max_ahead
  if stepped then ahead, base = stamp - now, stamp end
  local at = base
  if stamp > at then at = stamp end

--@ piece leases_pass
-- The twin of LeaseTable::pass() in src/rules/lease_table.hpp in its place in a rule: counts the lease at `live`, of
-- the words held, next and expiry, among those that have lapsed.
  local left, last = used - lapsed, live == tail
  if held == 0 or held > left or (held == left) ~= last or count == slots or
    (not last and (next < 1 or next > slots)) then
    return Errc.corrupt_state
  end
  lapsed, count = lapsed + held, count + 1
  if last then
    live, expiry = 0, 0
  else
    live = next
    held, next, expiry = words(8 * live + 3, 3)
  end

--@ piece leases_standing
-- The twins of LeaseTable::remaining() and reset_after() in src/rules/lease_table.hpp in their place in a rule.
  local remaining = limit - used + lapsed
  if remaining < 0 or not (room or count > 0) then remaining = 0 end
  local reset_after = 0
  if live ~= 0 then
    local last = word(8 * tail + 5)
    if last <= at then return Errc.corrupt_state end
    reset_after = last - base
  end

--@ piece leases_room
-- As leases_lapsed, but after the clock was set far back also what must lapse so that `weight` fits.
  local room = free ~= 0 or slots < Rule.max_holders
  local lapsed, count, live, expiry = 0, 0, first, 0
  if first ~= 0 and (at >= earliest or stepped) then
    if at >= latest then
      lapsed, count, live = used, slots, 0
    else
      local held, next
      held, next, expiry = words(8 * live + 3, 3)
      while live ~= 0 and (expiry <= at or
        (stepped and (used - lapsed + weight > limit or not (room or count > 0)))) do
--@ use leases_pass
      end
    end
  end

--@ piece leases_wait
-- The twin of LeaseTable::refused() in src/rules/lease_table.hpp in its place in a rule, behind leases_room: when
-- `weight` fits is in `till`.
--@ use leases_standing
  local till = base
  if live ~= 0 then
    local held, next
    held, next, expiry = words(8 * live + 3, 3)
    while live ~= 0 and (used - lapsed + weight > limit or not (room or count > 0)) do
      till = expiry
      if expiry <= at then return Errc.corrupt_state end
--@ use leases_pass
    end
  end

--@ piece leases_lapsed
-- The twin of LeaseTable::lapsed() in src/rules/lease_table.hpp in its place in a rule: what has
-- lapsed together, and the first to live on.
  local room = free ~= 0 or slots < Rule.max_holders
  local lapsed, count, live, expiry = 0, 0, first, 0
  if first ~= 0 and at >= earliest then
    if at >= latest then
      lapsed, count, live = used, slots, 0
    else
      local held, next
      held, next, expiry = words(8 * live + 3, 3)
      while live ~= 0 and expiry <= at do
--@ use leases_pass
      end
    end
  end

--@ piece leases_find
-- The twin of LeaseTable::find() in src/rules/lease_table.hpp in its place in a rule: the place of
-- the live lease with this id, and its words; it was told that it is `slot`, or nothing.
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
      if begin < 0 or begin > word_limit then return Errc.corrupt_state end
      if begin == high then
        held, next, ends, prev, a, b, c, token = words(8 * i + 3, 8)
        if b == middle and c == low and held > 0 and ends > at then
          found = i
          break
        end
      end
    end
  end

--@ piece leases_pop
-- The twins of LeaseTable::reclaim() and pop() in src/rules/lease_table.hpp in their place in a rule:
-- takes away what has lapsed, as far as one call does, and leaves a free place in `slot`.
  -- reclaim()
  if live == 0 then
    used, slots, first, tail, free, under, earliest, latest = 0, 0, 0, 0, 0, 0, 0, 0
    lapsed, count = 0, 0
  else
    if expiry ~= 0 then earliest = expiry end
    if count > 0 then
      local taken, old, slot = count, free, first
      if taken > Rule.max_reclaimed then taken = Rule.max_reclaimed end
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
    if under == Rule.unread then free = word(8 * slot + 4) else free = under end
    if free > slots then return Errc.corrupt_state end
    under = 0
    if free ~= 0 then under = Rule.unread end
  end

--@ piece leases_place
-- The twin of LeaseTable::place() in src/rules/lease_table.hpp in its place in a rule: where a lease
-- that ends at `ends` belongs in the order of expiry; it is at `found`, or at none yet.
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
        return Errc.corrupt_state
      end
      steps, before = steps + 1, after
      if after == first then
        after = 0
      else
        after = word(8 * after + 6)
        if after < 1 or after > slots then
          return Errc.corrupt_state
        end
        other = word(8 * after + 5)
      end
    end
  end

--@ piece leases_unlink
-- The twin of LeaseTable::unlink() in src/rules/lease_table.hpp in its place in a rule: the neighbours
-- of the place `found` point at each other.
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
      return Errc.corrupt_state
    end

--@ piece leases_prolong
-- The twin of prolong() in src/rules/leases.cpp in its place in a rule: the lease at `found` ends at
-- `ends`, between `after` and `before`.
  if after == found then
    put(8 * found + 5, struct.pack('<i8', ends))
  else
--@ use leases_unlink
    if after ~= 0 then put(8 * after + 4, struct.pack('<i8', found)) else first, earliest = found, ends end
    if before ~= 0 then put(8 * before + 6, struct.pack('<i8', found)) else tail = found end
    put(8 * found + 4, struct.pack('<i8i8i8', before, ends, after))
  end

--@ operation leases_acquire(head[11] | limit, weight, ttl, tier, seek, high, middle, low)
-- The twin of LeasesRule::acquire in src/rules/leases.cpp: same names, same order, with the members of LeaseTable in
-- their places.
  if limit < 1 or limit > word_limit then return Errc.invalid_argument end
  if weight < 1 then return Errc.invalid_cost end
  if weight > limit then return Errc.cost_exceeds_capacity end
  if ttl < Rule.min_ttl or ttl > Rule.max_ttl or tier < 0 or tier > Rule.max_tier or
    (seek ~= 0 and seek ~= 1) then
    return Errc.invalid_argument
  end
--@ use leases_id
--@ use leases_base

  if seek == 1 then
    local slot = 0
--@ use leases_find
    if found ~= 0 then
--@ use leases_lapsed
--@ use leases_standing
      return 1, remaining, 0, reset_after, struct.pack('<i8i8i8i8', tier, found, token, ends - ahead)
    end
  end

--@ use leases_room
  if used - lapsed + weight > limit or not (room or count > 0) then
--@ use leases_wait
    return 0, remaining, till - base, reset_after, struct.pack('<i8i8i8i8', tier, 0, 0, 0)
  end

  local slot
--@ use leases_pop

  local ends = at + ttl
  if ends > word_limit then ends = word_limit end

  local found = 0 -- none moves
--@ use leases_place

  if now > fence then fence = now else fence = fence + 1 end
  if fence > word_limit or used > word_limit - weight then return Errc.corrupt_state end
  put(8 * slot + 3,
    struct.pack('<i8i8i8i8i8i8i8i8', weight, before, ends, after, high, middle, low, fence))
  if after ~= 0 then put(8 * after + 4, struct.pack('<i8', slot)) else first, earliest = slot, ends end
  if before ~= 0 then put(8 * before + 6, struct.pack('<i8', slot)) else tail = slot end
  used = used + weight
--@ use leases_write
  local remaining = limit - used + lapsed
  if remaining < 0 or not (free ~= 0 or slots < Rule.max_holders or count > 0) then remaining = 0 end
  return 1, remaining, 0, latest - base, struct.pack('<i8i8i8i8', tier, slot, fence, ends - ahead)

--@ operation leases_release(head[11] | limit, slot, high, middle, low)
-- The twin of LeasesRule::release in src/rules/leases.cpp: same names, same order, with the members of LeaseTable in
-- their places.
--@ use leases_known
--@ use leases_base

--@ use leases_lapsed

--@ use leases_find

  if found == 0 then
--@ use leases_standing
    return 1, remaining, 0, reset_after, struct.pack('<i8', 0)
  end
  if held > used - lapsed then return Errc.corrupt_state end
  if first == tail then
    used, slots, first, tail, free, under, earliest, latest = 0, 0, 0, 0, 0, 0, 0, 0
  else
--@ use leases_unlink
    put(8 * found + 3, struct.pack('<i8i8', 0, free)) -- push()
    free, under = found, free
    used = used - held
  end
--@ use leases_write
  local remaining = limit - used + lapsed
  if remaining < 0 then remaining = 0 end
  local reset_after = latest - base
  if reset_after < 0 then reset_after = 0 end
  return 1, remaining, 0, reset_after, struct.pack('<i8', 1)

--@ operation leases_renew(head[11] | limit, ttl, slot, high, middle, low)
-- The twin of LeasesRule::renew in src/rules/leases.cpp: same names, same order, with the members of LeaseTable in
-- their places.
  if ttl < Rule.min_ttl or ttl > Rule.max_ttl then return Errc.invalid_argument end
--@ use leases_known
--@ use leases_base

--@ use leases_lapsed

--@ use leases_find

  local remaining = limit - used + lapsed
  if remaining < 0 or not (room or count > 0) then remaining = 0 end
  local is_changed = false
  local old = ends
  if found ~= 0 then
    ends = at + ttl
    if ends > word_limit then ends = word_limit end
    is_changed = ends > old
  end
  if not is_changed then
    local reset_after = 0
    if live ~= 0 then
      local last = word(8 * tail + 5)
      if last <= at then return Errc.corrupt_state end
      reset_after = last - base
    end
    if found == 0 then return 0, remaining, 0, reset_after, struct.pack('<i8i8', 0, 0) end
    return 1, remaining, 0, reset_after, struct.pack('<i8i8', token, old - ahead)
  end

--@ use leases_place

--@ use leases_prolong
--@ use leases_write
  return 1, remaining, 0, latest - base, struct.pack('<i8i8', token, ends - ahead)

--@ operation leases_peek(head[11] | limit, weight, tier)
-- The twin of LeasesRule::peek in src/rules/leases.cpp: same names, same order, with the members of LeaseTable in
-- their places.
  if limit < 1 or limit > word_limit then return Errc.invalid_argument end
  if weight < 1 then return Errc.invalid_cost end
  if weight > limit then return Errc.cost_exceeds_capacity end
  if tier < 0 or tier > Rule.max_tier then return Errc.invalid_argument end
--@ use leases_base

--@ use leases_room
  if used - lapsed + weight > limit or not (room or count > 0) then
--@ use leases_wait
    return 0, remaining, till - base, reset_after, struct.pack('<i8', tier)
  end

--@ use leases_standing
  return 1, remaining, 0, reset_after, struct.pack('<i8', tier)

--@ operation leases_block(head[11] | limit, span)
-- The twin of LeasesRule::block in src/rules/leases.cpp: same names, same order, with the members
-- of LeaseTable and enter() in their places.
  if limit < 1 or limit > Rule.block_weight or span < 0 or span > Rule.max_block then
    return Errc.invalid_argument
  end
--@ use leases_base

--@ use leases_lapsed

  local slot, high, middle, low = 0, 0, 0, Rule.block_id
--@ use leases_find

  local old = ends
  ends = at + span
  if ends > word_limit then ends = word_limit end
  local stands = span == 0 or (found ~= 0 and old >= ends)
  local fits = found ~= 0 or ((room or count > 0) and
    (live == 0 or used + Rule.block_weight <= word_limit))
  if stands or not fits then
--@ use leases_standing
    if stands then return 1, remaining, 0, reset_after end
    return 0, remaining, 0, reset_after
  end

  if found == 0 then
--@ use leases_pop
  end

--@ use leases_place

  if found == 0 then
    put(8 * slot + 3,
      struct.pack('<i8i8i8i8i8i8i8i8', Rule.block_weight, before, ends, after, high, middle, low, 0))
    if after ~= 0 then put(8 * after + 4, struct.pack('<i8', slot)) else first, earliest = slot, ends end
    if before ~= 0 then put(8 * before + 6, struct.pack('<i8', slot)) else tail = slot end
    used = used + Rule.block_weight
  else
--@ use leases_prolong
  end
--@ use leases_write
  return 1, 0, 0, latest - base

--@ operation leases_reset(head[11] | limit)
-- The twin of LeasesRule::reset in src/rules/leases.cpp: same names, same order.
  if limit < 1 or limit > word_limit then return Errc.invalid_argument end
--@ use leases_head
  if slots ~= 0 then
    put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', 0, stamp, ahead, fence, 0, 0, 0, 0, 0, 0, 0))
  end
  return 1, limit, 0, 0
