  -- The end of the driver of a plan: decides this step, and after the last writes all or nothing.
  local remaining, retry_after, reset_after, new_first, new_second = 0, 0, 0
  if not status then
    status, remaining, retry_after, reset_after, new_first, new_second =
      decide(first, second, now, a, b, c, d, e, f)
    if new_first then writes[i] = struct.pack(STATE, KIND, new_first, new_second) end
  end
  all = all and status == 1
  reply = reply .. struct.pack('<i8i8i8i8', status, remaining, retry_after, reset_after)
end

if all then
  for i = 1, #KEYS do
    if writes[i] then redis.call('PSETEX', KEYS[i], ARGV[2 * i + 1], writes[i]) end
  end
end
return reply
