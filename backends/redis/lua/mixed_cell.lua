    -- In the driver of a plan: decides a step on a cell.
    if not status then
      local new_first, new_second
      status, remaining, retry_after, reset_after, new_first, new_second, details =
        decide(first, second, now, struct.unpack(ARGUMENTS, step, 2))
      if new_first then writes[i] = struct.pack(STATE, KIND, new_first, new_second) end
    end
  else
    key, is_corrupt, front, rest = KEYS[i], false, nil, nil
    seen = redis.pcall('GETRANGE', key, '0', '256')

