-- The twin of the kernel of shared_sliding_window.expect in src/rules/shared_sliding_window.cpp: same names, same
-- order, with setting() in its place.
local function shared_sliding_window_expect(head, _, now, reported, expected, permits, keep_alive,
    first_end)
  if permits < 0 then return -2, 0, 0, 0 end -- Errc::invalid_cost
  if permits > 65536 then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if reported < 0 or reported > 4503599627370496 or expected < 0 or
    expected > 4503599627370496 or keep_alive < 1 or keep_alive > 2251799813685248 or
    first_end < 0 or first_end > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_sliding_window_setting
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  local has_ended = first_end ~= 0 and now >= first_end
  if version ~= expected or has_ended then return -40, 0, 0, 0 end -- Errc::config_changed
  if permits > rate then return -1, 0, 0, 0 end -- Errc::cost_exceeds_capacity
  if now < touched or now - touched >= (kept - kept % 4) / 4 or
    kept - (now - touched) < interval then
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, generation, rate, interval, per_client, now,
      keep_alive))
  end
  return 1, rate, 0, 0
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 5, '<i8i8i8i8i8', 7, 0, shared_sliding_window_expect

