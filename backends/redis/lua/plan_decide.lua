  -- In the driver of a plan on cells: decides this step.
  local remaining, retry_after, reset_after, new_first, new_second, output = 0, 0, 0
  if not status then
    status, remaining, retry_after, reset_after, new_first, new_second, output =
      decide(first, second, now, struct.unpack(ARGUMENTS, step, 2))
  end
