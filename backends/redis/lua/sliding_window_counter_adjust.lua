-- The twin of SlidingWindowCounterRule::adjust in src/rules/sliding_window_counter.cpp: same names, same order.
local function sliding_window_counter_adjust(head, table, now, limit, span, amount, change, taken)
  if limit < 1 or limit > 1099511627776 or span < 1 or span > 4398046511104 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if amount < 0 or amount > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if change < 0 or change > 3 or taken < 0 or taken > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if amount > 1099511627776 then amount = 1099511627776 end -- max_limit
  local window, cost = taken - taken % span, 0
-- SHARED sliding_window_counter_view
  local is_before, changed = window + span == start, 0
  local function take_off(count)
    local units = amount - changed
    if units > count then units = count end
    changed = changed + units
    return count - units
  end
  local function add(count)
    changed = 1099511627776 - count -- max_limit
    if changed > amount then changed = amount end
    return count + changed
  end
  if change == 0 then -- give_back
    if window == start then current = take_off(current) end
    if is_before then previous = take_off(previous) end
  elseif change == 1 then -- charge
    if is_before then previous = add(previous) end
    if window >= start then current = add(current) end
  elseif change == 2 then -- penalize
    current = add(current)
  else -- reward
    current = take_off(current)
    previous = take_off(previous)
  end
  if changed > 0 then put(0, struct.pack('<i8i8i8', start, current, previous)) end
-- SHARED sliding_window_counter_standing
  return 1, left, 0, clear, struct.pack('<i8', changed)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 23, '<i8i8i8i8i8', 4, 1, sliding_window_counter_adjust
