-- The twin of WaitLineRule::leave in src/rules/wait_line.cpp, behind wait_line_scan.lua.
local function wait_line_leave(head, _, now, limit, client, arrival)
  if limit < 0 or limit > 4503599627370496 or client < 1 or client > 4503599627370496 or
    arrival < 0 or arrival > 4503599627370496 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local mine, since, free, finish, before, ahead, clear_at, idle_at, first =
    wait_line_scan(head[1], now, client, arrival, 0)
  if mine >= 0 and (arrival == 0 or arrival == since) then -- drop()
    put(0, struct.pack('<i8', finish))
    put(3 * mine + 1, struct.pack('<i8', 0))
  end
  local reset_after = idle_at - now
  if reset_after < 0 then reset_after = 0 end
  return 1, limit, 0, reset_after, struct.pack('<i8i8', ahead, first)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 13, '<i8i8i8', 1, 2, wait_line_leave
