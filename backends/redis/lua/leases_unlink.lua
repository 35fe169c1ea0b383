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
      corrupt()
      return 0, 0, 0, 0
    end
