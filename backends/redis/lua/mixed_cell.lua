    -- In the driver of a plan: notes a step on a cell.
    writes[i], in_places[i] = packed, in_place
  else
    key, is_corrupt, front, rest = KEYS[i], false, nil, nil
    seen = redis.pcall('GETRANGE', key, '0', '256')

