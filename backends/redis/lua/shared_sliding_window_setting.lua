-- The twin of setting() in src/rules/shared_sliding_window.cpp, in its place in a rule: version 0 if there is none.
  local version, generation, rate, interval, per_client, touched, kept =
    head[1], head[2], head[3], head[4], head[5], head[6], head[7]
  if version == 0 or now >= touched + kept then
    version = 0
  elseif rate < 1 or rate > 65536 or interval < 1 or interval > 31622400000000 or
    per_client > 1 or generation > version or kept > 2251799813685248 then
    corrupt()
    version = 0
  end
