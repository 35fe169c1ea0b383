-- The twin of LeasesRule::reset in src/rules/leases.cpp: same names, same order.
local function leases_reset(head, table, now, limit)
  if limit < 1 or limit > 4503599627370496 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  local used, stamp, ahead, fence, slots, first, tail, free, under, earliest, latest = unpack(head)
  if slots > 4096 or first > slots or tail > slots or free > slots or -- max_holders
    (under > slots and under ~= 4097) or (first == 0) ~= (tail == 0) or -- unread
    (first == 0 and (used ~= 0 or slots ~= 0)) then
    corrupt()
    return 0, 0, 0, 0
  end
  if slots ~= 0 then
    put(0, struct.pack('<i8i8i8i8i8i8i8i8i8i8i8', 0, stamp, ahead, fence, 0, 0, 0, 0, 0, 0, 0))
  end
  return 1, limit, 0, 0
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 7, '<i8', 11, 0, leases_reset
