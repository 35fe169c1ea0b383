  -- The end of the driver of a plan: notes the answer of this step, and after the last writes all or
  -- nothing.
  all = all and status == 1
  verdicts = verdicts .. struct.pack('<i8i8i8i8', status, remaining, retry_after, reset_after)
  if output then
    told = told .. output
  elseif DETAILS ~= 0 then
    local count = DETAILS
    if count < 0 then count = 1 + table_words / 2 end
    told = told .. string.rep('\0', 8 * count)
  end
end

if all then
  -- In place first: a right to do so that is missing shows before anything is written.
  for i = 1, steps do
    if in_places[i] then redis.call('SETRANGE', KEYS[i], '1', writes[i]) end
  end
  for i = 1, steps do
    local pieces = rests[i]
    if writes[i] and not in_places[i] and (not pieces or fresh_keys[i]) then
      redis.call('PSETEX', KEYS[i], ARGV[2 * i + 1], writes[i])
    elseif pieces then
      if redis.call('PEXPIRE', KEYS[i], ARGV[2 * i + 1], 'GT') == 0 then -- longer, or taken away
        redis.call('PEXPIRE', KEYS[i], ARGV[2 * i + 1], 'NX')
      end
      redis.call('SETRANGE', KEYS[i], '1', writes[i])
    end
    for j = 1, pieces and #pieces or 0, 2 do
      redis.call('SETRANGE', KEYS[i], pieces[j], pieces[j + 1])
    end
  end
end
