-- The twin of WaitLineRule::peek in src/rules/wait_line.cpp, behind wait_line_scan.lua.
local function wait_line_peek(head, _, now, limit)
  if limit < 0 or limit > 4503599627370496 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  local mine, since, free, finish, before, ahead, clear_at, idle_at, first =
    wait_line_scan(head[1], now, 0, 0, 0)
  local reset_after = idle_at - now
  if reset_after < 0 then reset_after = 0 end
  return 1, limit, 0, reset_after, struct.pack('<i8i8', ahead, first)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 13, '<i8', 1, 2, wait_line_peek
