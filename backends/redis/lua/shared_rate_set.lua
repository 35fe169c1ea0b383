-- The twin of the kernel of shared_rate.set in src/algorithms/shared_rate.cpp: same names, same order,
-- with setting() in its place.
local function shared_rate_set(head, _, now, new_rate, new_interval, new_per_client, mode, keep_alive)
  if new_rate < 1 or new_rate > 65536 or new_interval < 1 or new_interval > 31622400000000 or
    new_per_client < 0 or new_per_client > 1 or mode < 0 or mode > 2 or
    keep_alive < 1 or keep_alive > 2251799813685248 or keep_alive < new_interval then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local version, generation, rate, interval, per_client, touched, kept =
    head[1], head[2], head[3], head[4], head[5], head[6], head[7]
  if version == 0 or now >= touched + kept then
    version = 0
  elseif rate < 1 or rate > 65536 or interval < 1 or interval > 31622400000000 or
    per_client > 1 or generation > version or kept > 2251799813685248 then
    corrupt()
    version = 0
  end

  local is_new = 0
  if version == 0 or mode ~= 0 then
    is_new = 1
    local new_version = 1
    if version < 4503599627370496 then new_version = version + 1 end
    if new_version < now then new_version = now end
    if version == 0 or mode ~= 2 or per_client ~= new_per_client then generation = new_version end
    version, rate = new_version, new_rate
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, generation, new_rate, new_interval,
      new_per_client, now, keep_alive))
  end
  return 1, rate, 0, 0, struct.pack('<i8i8', version, is_new)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 5, '<i8i8i8i8i8', 7, 2, shared_rate_set

