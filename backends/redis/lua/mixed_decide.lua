    -- In the driver of a plan: decides a step on a cell.
    local new_first, new_second
    if not status then
      status, remaining, retry_after, reset_after, new_first, new_second, output =
        decide(first, second, now, struct.unpack(ARGUMENTS, step, 2))
    end
