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
