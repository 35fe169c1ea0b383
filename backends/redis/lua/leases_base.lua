-- The twin of the beginning of LeaseTable in src/rules/lease_table.hpp in its place in a rule: the
-- words of the front, and the time that the leases live by.
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
  if stepped then ahead, base = stamp - now, stamp end
  local at = base
  if stamp > at then at = stamp end
