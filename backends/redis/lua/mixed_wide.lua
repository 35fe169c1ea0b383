    -- In the driver of a plan: decides a step on a wide state.
    if not status then
      local table = {struct.unpack(string.sub(WORDS, 1, 1 + 2 * table_words), step, table_at)}
      table[table_words + 1] = nil -- where unpacking ended
      status, remaining, retry_after, reset_after, output =
        decide(head, table, now, struct.unpack(ARGUMENTS, step, 2))
      if is_corrupt then
        status, remaining, retry_after, reset_after, output = -17, 0, 0, 0 -- Errc::corrupt_state
      end
      if front then
        rests[i] = rest or {}
        writes[i] = front
        if fresh then writes[i] = struct.pack('<B', KIND) .. front end
        fresh_keys[i] = fresh
      end
    end
  end
