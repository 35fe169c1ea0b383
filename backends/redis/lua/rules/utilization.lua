--@ piece utilization_check
-- The twin of is_valid() in src/rules/utilization.cpp, in its place in a rule.
  if limit ~= Rule.one or full_after < 1 or full_after > Rule.max_span or grace < 0 or
    grace > Rule.max_span - full_after or decay < 1 or decay > Rule.one or max_gap < 1 or
    max_gap > Rule.max_span then
    return Errc.invalid_argument
  end

--@ piece utilization_view
-- The twin of moment() in src/rules/utilization.cpp, in its place in a rule.
  if last == 0 and first ~= 0 then return Errc.corrupt_state end

  local full, level, stamp, elapsed = (grace + full_after) * Rule.one, 0, 0, 0
  local rest = (full + -full % decay) / decay
  local latest = now + Rule.max_ahead
  if last > 0 and last <= latest and now - last < max_gap + rest + 1 then
    stamp, level = last, first
    if now > stamp then elapsed = now - stamp end
    if level > full then level = full end
    if elapsed > max_gap then level = level - (elapsed - max_gap) * decay end
    if level < 0 then level = 0 end
  end

--@ piece utilization_rest
-- The twin of rests_after() in src/rules/utilization.cpp, in its place in a rule.
  if level > 0 then
    reset_after = stamp + max_gap - now
    if reset_after < 0 then reset_after = 0 end
    reset_after = reset_after + (level + -level % decay) / decay
  end

--@ piece utilization_share
-- What shed() and peek() in src/rules/utilization.cpp have in common, with moment(), shed_span() and rests_after() in
-- their places: the span of draws that are shed, and the share of the tier's calls that this is.
--@ use utilization_check
  if tiers < 1 or tiers > Rule.max_tiers or tier < 0 or tier > tiers then
    return Errc.invalid_argument
  end
--@ use utilization_view
  local level_us = (level - level % Rule.one) / Rule.one
  local span, reset_after = level_us - grace, 0
  if span < 0 then span = 0 end
  span = span * tiers - (tiers - tier) * full_after
  if span < 0 then span = 0 elseif span > full_after then span = full_after end

  local share = span * Rule.one
  local probability = (share - share % full_after) / full_after
--@ use utilization_rest

--@ piece utilization_answer
-- The twin of answer() in src/rules/utilization.cpp, in its place in a rule.
  return status, Rule.one - probability, 0, reset_after, nil, nil,
    struct.pack('<i8i8i8i8', tier, probability, level_us, stamp)

--@ operation utilization_sample(first, last | limit, grace, full_after, decay, max_gap, good, bad, utilization)
-- The twin of UtilizationRule::sample in src/rules/utilization.cpp: same names, same order, with speed() in its place.
--@ use utilization_check
  if good < 1 or good > bad or bad >= Rule.one or utilization < 0 or utilization > Rule.one then
    return Errc.invalid_argument
  end
--@ use utilization_view
  local speed = -decay
  if utilization > bad then
    local over, room = (utilization - bad) * Rule.one, Rule.one - bad
    speed = (over - over % room) / room
  elseif utilization < good then
    local under = (good - utilization) * Rule.one
    under = (under - under % good) / good
    if under > decay then speed = -under end
  end
  local step = elapsed
  if step > max_gap then step = max_gap end
  level = level + step * speed
  if level < 0 then level = 0 elseif level > full then level = full end
  if now > stamp then stamp = now end
  if stamp < 1 then stamp = 1 end

  local level_us = (level - level % Rule.one) / Rule.one
  local shed, reset_after = level_us - grace, 0
  if shed < 0 then shed = 0 end
  shed = shed * Rule.one
--@ use utilization_rest
  local remaining, output =
    Rule.one - (shed - shed % full_after) / full_after, struct.pack('<i8i8', level_us, stamp)
  if level == first and stamp == last then return 1, remaining, 0, reset_after, nil, nil, output end
  return 1, remaining, 0, reset_after, level, stamp, output

--@ operation utilization_shed(first, last | limit, grace, full_after, decay, max_gap, tiers, tier, draw)
-- The twin of UtilizationRule::shed in src/rules/utilization.cpp.
  if draw < 0 or draw >= full_after then return Errc.invalid_argument end
--@ use utilization_share
  local status = 0
  if draw >= span then status = 1 end
--@ use utilization_answer

--@ operation utilization_peek(first, last | limit, grace, full_after, decay, max_gap, tiers, tier)
-- The twin of UtilizationRule::peek in src/rules/utilization.cpp.
--@ use utilization_share
  local status = 0
  if span < full_after then status = 1 end
--@ use utilization_answer

--@ operation utilization_reset(first, last | limit)
-- The twin of decide_reset() in src/rules/utilization.cpp.
  if limit ~= Rule.one then return Errc.invalid_argument end
  if first ~= 0 or last ~= 0 then return 1, Rule.one, 0, 0, 0, 0 end
  return 1, Rule.one, 0, 0
