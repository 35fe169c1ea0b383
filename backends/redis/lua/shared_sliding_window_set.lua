-- The twin of the kernel of shared_sliding_window.set in src/rules/shared_sliding_window.cpp: same names, same order,
-- with setting() and kept() in their places.

-- What of a window stays beside a new rate, as {limit, span, until}; nil if the rate admits no more.
local function shaped(limit, span, till, rate, interval, now)
  if span <= interval or limit <= rate then return nil end
  local times = (limit + rate - 1 - (limit + rate - 1) % rate) / rate
  local most = (65536 - 65536 % rate) / rate
  if times > most then times = most end
  if times <= (span - span % interval) / interval then span = interval * times end
  if span <= interval then return nil end
  local parts = (span + interval - 1 - (span + interval - 1) % interval) / interval
  if rate * parts > limit then limit = rate * parts end
  if now + span + 3600000000 < till then till = now + span + 3600000000 end -- max_reserved
  return {limit, span, till}
end

-- Puts a window among those that are kept, unless one of them says as much; those that it makes
-- needless go. If there is no room, the first to end goes.
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

local function shared_sliding_window_set(head, _, now, new_rate, new_interval, new_per_client, mode, keep_alive)
  if new_rate < 1 or new_rate > 65536 or new_interval < 1 or new_interval > 31622400000000 or
    new_per_client < 0 or new_per_client > 1 or mode < 0 or mode > 2 or
    keep_alive < 1 or keep_alive > 2251799813685248 or keep_alive < new_interval then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_sliding_window_setting
  local before = {}
  for i = 8, 14, 3 do
    local limit, span, till = head[i], head[i + 1], head[i + 2]
    if limit > 65536 or span > 31622400000000 or (limit == 0) ~= (span == 0) then
      corrupt()
    elseif till > now and limit ~= 0 then
      before[#before + 1] = {limit, span, till}
    end
  end

  local is_new = 0
  if version == 0 or mode ~= 0 then
    is_new = 1
    local new_version = 1
    if version < 4503599627370496 then new_version = version + 1 end
    if new_version < now then new_version = now end
    local after = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}
    if version == 0 or mode ~= 2 or per_client ~= new_per_client or generation > new_version then
      generation = new_version
    else
      add(after, shaped(rate, interval, 4503599627370496, new_rate, new_interval, now))
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
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 5, '<i8i8i8i8i8', 16, 2, shared_sliding_window_set

