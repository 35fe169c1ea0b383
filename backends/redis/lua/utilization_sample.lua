-- The twin of UtilizationRule::sample in src/rules/utilization.cpp: same names, same order,
-- with moment(), speed() and rests_after() in their places. `one` is 1000000.
local function utilization_sample(first, last, now, limit, grace, full_after, decay, max_gap, good,
                                  bad, utilization)
  if limit ~= 1000000 or full_after < 1 or full_after > 3600000000 or grace < 0 or
    grace > 3600000000 - full_after or decay < 1 or decay > 1000000 or max_gap < 1 or
    max_gap > 3600000000 or good < 1 or good > bad or bad >= 1000000 or utilization < 0 or
    utilization > 1000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  if last == 0 and first ~= 0 then return -17, 0, 0, 0 end -- Errc::corrupt_state

  local full, level, stamp, elapsed = (grace + full_after) * 1000000, 0, 0, 0
  local rest = (full + -full % decay) / decay
  local latest = now + 60000000 -- max_ahead, us
  if last > 0 and last <= latest and now - last < max_gap + rest + 1 then
    stamp, level = last, first
    if now > stamp then elapsed = now - stamp end
    if level > full then level = full end
    if elapsed > max_gap then level = level - (elapsed - max_gap) * decay end
    if level < 0 then level = 0 end
  end

  local speed = -decay
  if utilization > bad then
    local over, room = (utilization - bad) * 1000000, 1000000 - bad
    speed = (over - over % room) / room
  elseif utilization < good then
    local under = (good - utilization) * 1000000
    under = (under - under % good) / good
    if under > decay then speed = -under end
  end
  local step = elapsed
  if step > max_gap then step = max_gap end
  level = level + step * speed
  if level < 0 then level = 0 elseif level > full then level = full end
  if now > stamp then stamp = now end
  if stamp < 1 then stamp = 1 end

  local level_us = (level - level % 1000000) / 1000000
  local shed, reset_after = level_us - grace, 0
  if shed < 0 then shed = 0 end
  shed = shed * 1000000
  if level > 0 then
    reset_after = stamp + max_gap - now
    if reset_after < 0 then reset_after = 0 end
    reset_after = reset_after + (level + -level % decay) / decay
  end
  local remaining, output =
    1000000 - (shed - shed % full_after) / full_after, struct.pack('<i8i8', level_us, stamp)
  if level == first and stamp == last then return 1, remaining, 0, reset_after, nil, nil, output end
  return 1, remaining, 0, reset_after, level, stamp, output
end

local KIND, ARGUMENTS, DETAILS, decide = 9, '<i8i8i8i8i8i8i8i8', 2, utilization_sample
