-- The twin of UtilizationRule::shed in src/rules/utilization.cpp: same names, same order, with
-- moment(), shed_span(), rests_after() and answer() in their places. `one` is 1000000.
local function utilization_shed(first, last, now, limit, grace, full_after, decay, max_gap, tiers,
                                tier, draw)
  if limit ~= 1000000 or full_after < 1 or full_after > 3600000000 or grace < 0 or
    grace > 3600000000 - full_after or decay < 1 or decay > 1000000 or max_gap < 1 or
    max_gap > 3600000000 or tiers < 1 or tiers > 65535 or tier < 0 or tier > tiers or draw < 0 or
    draw >= full_after then
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

  local level_us = (level - level % 1000000) / 1000000
  local span, reset_after = level_us - grace, 0
  if span < 0 then span = 0 end
  span = span * tiers - tier * full_after
  if span < 0 then span = 0 elseif span > full_after then span = full_after end

  local share = span * 1000000
  local probability = (share - share % full_after) / full_after
  if level > 0 then
    reset_after = stamp + max_gap - now
    if reset_after < 0 then reset_after = 0 end
    reset_after = reset_after + (level + -level % decay) / decay
  end
  local status = 0
  if draw >= span then status = 1 end
  return status, 1000000 - probability, 0, reset_after, nil, nil,
    struct.pack('<i8i8i8i8', tier, probability, level_us, stamp)
end

local KIND, ARGUMENTS, DETAILS, decide = 9, '<i8i8i8i8i8i8i8i8', 4, utilization_shed
