  -- The end of the driver of a plan on cells: decides this step, and after the last writes all or
  -- nothing.
  local remaining, retry_after, reset_after, new_first, new_second, details = 0, 0, 0
  if not status then
    status, remaining, retry_after, reset_after, new_first, new_second, details =
      decide(first, second, now, struct.unpack(ARGUMENTS, step, 2))
    if new_first then writes[i] = pack(STATE, KIND, new_first, new_second) end
  end
  all = all and status == 1
  reply = reply .. pack('<i8i8i8i8', status, remaining, retry_after, reset_after)
  if DETAILS ~= 0 then told = told .. (details or string.rep('\0', 8 * DETAILS)) end
end

if all then
  for i = 1, #keys do
    if writes[i] then redis.call('PSETEX', keys[i], args[2 * i + 1], writes[i]) end
  end
end
return reply .. told
