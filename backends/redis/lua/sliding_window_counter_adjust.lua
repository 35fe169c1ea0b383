-- The twin of SlidingWindowCounterRule::adjust in src/rules/sliding_window_counter.cpp: same names, same order,
-- with look() and clear_after() in their place.
local function sliding_window_counter_adjust(head, table, now, limit, span, amount, change, taken)
  if limit < 1 or limit > 1099511627776 or span < 1 or span > 4398046511104 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if amount < 0 or amount > 4503599627370496 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if change < 0 or change > 3 or taken < 0 or taken > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if amount > 1099511627776 then amount = 1099511627776 end -- max_limit
  local since, cost = head[5], 0
-- SHARED sliding_window_counter_view

  local function answer()
    local left, clear = limit - spent, 0
    if left < 0 or closed > now then left = 0 end
    if current > 0 then
      clear = start + 2 * width - now
    elseif previous > 0 then
      clear = start + width - now
    end
    if fits_at then clear = spent > 0 and fits_at(clear + now, 0) - now or 0 end
    if closed - now > clear then clear = closed - now end
    return left, clear
  end

  local left, clear = answer()
  local adds = change == 1 or change == 2
  if adds and fits_at and spent <= limit then -- convert()
    start, current, previous, weighed, width, fits_at = at - at % span, spent, 0, true, span, nil
  end
  local window, changed = taken - taken % width, 0
  local is_before = window + width == start
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
    if not weighed and width == span and taken >= since then
      if window == start then current = take_off(current) end
      if is_before then previous = take_off(previous) end
    end
  elseif change == 1 then -- charge
    if is_before then previous = add(previous) end
    if window >= start then current = add(current) end
  elseif change == 2 then -- penalize
    current = add(current)
  else -- reward
    current = take_off(current)
    previous = take_off(previous)
  end
  if changed > 0 then
    local from, units, before = start, current, previous
    if adds then
      local parts = (start + width - at - 1) * 2048 -- spare_at()
      late = (parts - parts % width) / width * 2199023255552
    elseif start == head[1] + width then -- what drains is still what the windows of then weighed
      from, units, before, late = head[1], previous, head[4], packed - packed % 2199023255552
    end
    local marked = width
    if closed > now then marked = width + 8796093022208 end -- blocked
    local counts = struct.pack('<i8i8i8i8', from, marked, units + late, before)
    if weighed then counts = counts .. struct.pack('<i8', now) end
    put(0, counts)
    spent = estimate(start, width, current, previous, at)
    if fits_at then count(from, units, before, late, spent) end
    left, clear = answer()
  end
  return 1, left, 0, clear, struct.pack('<i8', changed)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 19, '<i8i8i8i8i8', 5, 1, sliding_window_counter_adjust
