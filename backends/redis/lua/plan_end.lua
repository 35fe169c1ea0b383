  -- The end of the driver of a plan on cells: notes this step, and after the last writes all or
  -- nothing.
  writes[i], in_places[i] = packed, in_place
  all = all and status == 1
  reply = reply .. pack('<i8i8i8i8', status, remaining, retry_after, reset_after)
  if DETAILS ~= 0 then told = told .. (output or string.rep('\0', 8 * DETAILS)) end
end

if all then
  -- In place first: a right to do so that is missing shows before anything is written.
  for i = 1, #keys do
    if in_places[i] then redis.call('SETRANGE', keys[i], '1', writes[i]) end
  end
  for i = 1, #keys do
    if writes[i] and not in_places[i] then
      redis.call('PSETEX', keys[i], args[2 * i + 1], writes[i])
    end
  end
end
return reply .. told
