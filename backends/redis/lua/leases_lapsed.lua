-- The twin of LeaseTable::lapsed() in src/rules/lease_table.hpp in its place in a rule: what has
-- lapsed together, and the first to live on.
  local room = free ~= 0 or slots < 4096 -- max_holders
  local lapsed, count, live, expiry = 0, 0, first, 0
  if first ~= 0 and at >= earliest then
    if at >= latest then
      lapsed, count, live = used, slots, 0
    else
      local held, next
      held, next, expiry = words(8 * live + 3, 3)
      while live ~= 0 and expiry <= at do
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
