--@ piece shared_sliding_window_setting
-- The twin of setting() in src/rules/shared_sliding_window.cpp, in its place in a rule: version 0 if there is
-- none.
  local version, generation, rate, interval, per_client, touched, kept =
    head[1], head[2], head[3], head[4], head[5], head[6], head[7]
  if version == 0 or now >= touched + kept then
    version = 0
  elseif rate > Rule.max_rate and rate ~= word_limit or interval < 1 or interval > Rule.max_interval or
    per_client > 1 or generation > version or kept > Rule.max_keep_alive then
    return Errc.corrupt_state
  end

--@ operation shared_sliding_window_configure(head[16] | new_rate, new_interval, new_per_client, mode, keep_alive)
-- The twin of the kernel of shared_sliding_window.configure in src/rules/shared_sliding_window.cpp: same names, same
-- order, with setting() and kept() in their places. What of a window stays beside a new rate, as {limit, span,
-- until}; nil if the rate admits no more. Puts a window among those that are kept, unless one of them says as
-- much; those that it makes needless go. If there is no room, the first to end goes.
local function shaped(limit, span, till, rate, interval, now)
  if limit == word_limit or limit <= rate then return nil end
  if rate > 0 then
    if span <= interval then return nil end
    local times = (limit + rate - 1 - (limit + rate - 1) % rate) / rate
    local most = (Rule.max_rate - Rule.max_rate % rate) / rate
    if times > most then times = most end
    if times <= (span - span % interval) / interval then span = interval * times end
    if span <= interval then return nil end
    local parts = (span + interval - 1 - (span + interval - 1) % interval) / interval
    if rate * parts > limit then limit = rate * parts end
  end
  if now + span + Rule.max_reserved < till then till = now + span + Rule.max_reserved end
  return {limit, span, till}
end

local function add(all, more)
  if not more then return end
  local first = 1
  for i = 1, 3 do
    local one = all[i]
    if one[1] ~= 0 and one[1] <= more[1] and one[2] >= more[2] and one[3] >= more[3] then
      return
    end
    if more[1] <= one[1] and more[2] >= one[2] and more[3] >= one[3] then all[i] = {0, 0, 0} end
    if all[i][3] < all[first][3] then first = i end
  end
  if more[3] > all[first][3] then all[first] = more end
end
  if new_rate < 0 or new_rate > Rule.max_rate and new_rate ~= word_limit or new_interval < 1 or new_interval > Rule.max_interval or
    new_per_client < 0 or new_per_client > 1 or mode < 0 or mode > 2 or
    keep_alive < 1 or keep_alive > Rule.max_keep_alive or keep_alive < new_interval then
    return Errc.invalid_argument
  end
--@ use shared_sliding_window_setting
  local before = {}
  for i = 8, 14, 3 do
    local limit, span, till = head[i], head[i + 1], head[i + 2]
    if limit > Rule.max_rate or span > Rule.max_interval or (limit == 0) ~= (span == 0) then
      return Errc.corrupt_state
    elseif till > now and limit ~= 0 then
      before[#before + 1] = {limit, span, till}
    end
  end

  local is_new, is_same = 0, version ~= 0 and mode == 2 and rate == new_rate and
    interval == new_interval and per_client == new_per_client
  if is_same then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, generation, rate, interval, per_client, now, keep_alive))
  elseif version == 0 or mode ~= 0 then
    is_new = 1
    local new_version = 1
    if version < word_limit then new_version = version + 1 end
    if new_version < now then new_version = now end
    local after = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}
    if version == 0 or mode ~= 2 or per_client ~= new_per_client or generation > new_version then
      generation = new_version
    else
      add(after, shaped(rate, interval, word_limit, new_rate, new_interval, now))
      for i = 1, #before do
        local limit, span, till = unpack(before[i])
        add(after, shaped(limit, span, till, new_rate, new_interval, now))
      end
    end
    version, rate = new_version, new_rate
    local packed = struct.pack('<i8i8i8i8i8i8i8', version, generation, new_rate, new_interval,
      new_per_client, now, keep_alive)
    for i = 1, 3 do
      packed = packed .. struct.pack('<i8i8i8', after[i][1], after[i][2], after[i][3])
    end
    put(0, packed)
  end
  return 1, rate, 0, 0, struct.pack('<i8i8', version, is_new)

--@ operation shared_sliding_window_expect(head[7] | reported, expected, permits, keep_alive, first_end)
-- The twin of the kernel of shared_sliding_window.expect in src/rules/shared_sliding_window.cpp: same names,
-- same order, with setting() in its place.
  if permits < 0 then return Errc.invalid_cost end
  if permits > Rule.max_rate then return Errc.cost_exceeds_capacity end
  if reported < 0 or reported > word_limit or expected < 0 or
    expected > word_limit or keep_alive < 1 or keep_alive > Rule.max_keep_alive or
    first_end < 0 or first_end > word_limit then
    return Errc.invalid_argument
  end
--@ use shared_sliding_window_setting
  if version == 0 then return Errc.not_configured end
  local has_ended = first_end ~= 0 and now >= first_end
  if version ~= expected or has_ended then return Errc.config_changed end
  if permits > rate then return Errc.cost_exceeds_capacity end
  if now < touched or now - touched >= (kept - kept % 4) / 4 or
    kept - (now - touched) < interval then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, generation, rate, interval, per_client, now,
      keep_alive))
  end
  return 1, rate, 0, 0

--@ operation shared_sliding_window_config(head[16] | reported, keep_alive)
-- The twin of the kernel of shared_sliding_window.config in src/rules/shared_sliding_window.cpp: same names, same
-- order, with setting() and kept() in their places. Writes nothing.
  if reported < 0 or reported > word_limit or keep_alive < 1 or
    keep_alive > Rule.max_keep_alive then
    return Errc.invalid_argument
  end
--@ use shared_sliding_window_setting
  local windows, first_end = '', 0
  for i = 8, 14, 3 do
    local limit, span, till = head[i], head[i + 1], head[i + 2]
    if limit > Rule.max_rate or span > Rule.max_interval or (limit == 0) ~= (span == 0) then
      return Errc.corrupt_state
    elseif till <= now then
      limit, span = 0, 0
    elseif limit ~= 0 and (first_end == 0 or till < first_end) then
      first_end = till
    end
    windows = windows .. struct.pack('<i8i8', limit, span)
  end
  if version == 0 then return Errc.not_configured end
  return 1, rate, 0, 0, struct.pack('<i8i8i8i8i8', version, generation, rate, interval, per_client) ..
    windows .. struct.pack('<i8', first_end)
