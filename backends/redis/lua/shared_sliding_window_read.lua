-- The twin of the kernel of shared_sliding_window.read in src/rules/shared_sliding_window.cpp: same names, same order,
-- with setting() and kept() in their places. Writes nothing.
local function shared_sliding_window_read(head, _, now, reported, keep_alive)
  if reported < 0 or reported > 4503599627370496 or keep_alive < 1 or
    keep_alive > 2251799813685248 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_sliding_window_setting
  local windows, first_end = '', 0
  for i = 8, 14, 3 do
    local limit, span, till = head[i], head[i + 1], head[i + 2]
    if limit > 65536 or span > 31622400000000 or (limit == 0) ~= (span == 0) then
      corrupt()
    elseif till <= now then
      limit, span = 0, 0
    elseif limit ~= 0 and (first_end == 0 or till < first_end) then
      first_end = till
    end
    windows = windows .. struct.pack('<i8i8', limit, span)
  end
  if version == 0 then return -39, 0, 0, 0 end -- Errc::not_configured
  return 1, rate, 0, 0, struct.pack('<i8i8i8i8i8', version, generation, rate, interval, per_client) ..
    windows .. struct.pack('<i8', first_end)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 5, '<i8i8', 16, 12, shared_sliding_window_read

