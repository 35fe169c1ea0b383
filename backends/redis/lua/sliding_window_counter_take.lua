-- The twin of SlidingWindowCounterRule::take in src/rules/sliding_window_counter.cpp: same names, same order,
-- with look(), fits_at() and clear_after() in their place. Returns status, remaining, retry_after
-- and reset_after.
local function sliding_window_counter_take(head, table, now, limit, span, cost)
  if limit < 1 or limit > 1099511627776 or span < 1 or span > 4398046511104 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if cost < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if cost > limit then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
-- SHARED sliding_window_counter_view

  local left = limit - spent
  if left < 0 or closed > now then left = 0 end
  if cost > 0 and cost <= left then
    if fits_at then -- convert()
      start, current, previous, weighed, width, fits_at = at - at % span, spent, 0, true, span, nil
    end
    current = current + cost
  end
  local clear = 0
  if current > 0 then
    clear = start + 2 * width - now
  elseif previous > 0 then
    clear = start + width - now
  end
  if fits_at then clear = spent > 0 and fits_at(clear + now, 0) - now or 0 end
  if closed > 0 and closed - now > clear then clear = closed - now end
  if closed > now or spent + cost > limit then
    local room, fits = limit - cost, start + width -- eases_at()
    if closed > 0 and cost <= limit - spent then
      fits = now
    elseif room > current and previous > 0 then
      if room - current >= previous then
        fits = start
      else
        fits = start + width - scale(room - current, width, previous)
      end
    elseif current > room then
      fits = start + 2 * width - scale(room, width, current)
    end
    if fits_at and cost > limit - spent then fits = fits_at(fits, room) end
    if closed > fits then fits = closed end
    return 0, left, fits - now, clear
  end
  if cost > 0 then
    local parts = (start + span - at - 1) * 2048 -- spare_at()
    current = current + (parts - parts % span) / span * 2199023255552
    local counts = struct.pack('<i8i8i8i8', start, span, current, previous)
    if weighed then counts = counts .. struct.pack('<i8', now) end
    put(0, counts)
  end
  return 1, left - cost, 0, clear
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 19, '<i8i8i8', 4, 0, sliding_window_counter_take
