-- Log: the time of a unit, and the search for a window's edge.
local function sliding_window_search(word, words, base, next, capacity, size, total, newest,
    kept_span, oldest)
  local function unit(age)
    if age < size then
      local at = next - 1 - age
      if at < 0 then at = at + capacity end
      return word(base + at)
    end
    local interval = (age - size - (age - size) % capacity) / capacity
    if interval > 23 then interval = 23 end -- max_assumed - 1
    local time, other = oldest - interval * kept_span, newest - (interval + 1) * kept_span
    if other < time then time = other end
    if time < 0 then time = 0 end
    return time
  end

  -- The units later than `edge`, from a place that is right or has count > total. Of fewer() it is
  -- what comes behind sliding_window_fewer.lua.
  local function locate(count, before, first, edge)
    if count > total then
      count, before, first = 0, 0, 0
      if total > 0 then before = newest end
    end
    local low, high = 0, 0
    if count > 0 and first <= edge then
      high, before = count - 1, first
      if high > 0 and high <= size then
        local at = next - high
        if at < 0 then at = at + capacity end
        local run = 8
        if high < run then run = high end
        if capacity - at < run then run = capacity - at end
        local times = {words(base + at, run)}
        for i = 1, run do
          if times[i] > edge then return high, before, times[i] end
          before = times[i]
          high = high - 1
        end
      end
    elseif before > edge and count < total then
      low = count
      local step = 1
      while low + step <= total and unit(low + step - 1) > edge do
        low = low + step
        step = step * 2
      end
      high = low + step - 1
      if high > total then high = total end
    else
      return count, before, first
    end
    while low < high do
      local middle = (low + high - (low + high) % 2) / 2
      if unit(middle) > edge then low = middle + 1 else high = middle end
    end
    before, first = 0, 0
    if low < total then before = unit(low) end
    if low > 0 then first = unit(low - 1) end
    return low, before, first
  end
  return unit, locate
end

