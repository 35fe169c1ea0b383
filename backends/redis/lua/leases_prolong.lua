-- The twin of prolong() in src/rules/leases.cpp in its place in a rule: the lease at `found` ends at
-- `ends`, between `after` and `before`.
  if after == found then
    put(8 * found + 5, struct.pack('<i8', ends))
  else
-- SHARED leases_unlink
    if after ~= 0 then put(8 * after + 4, struct.pack('<i8', found)) else first, earliest = found, ends end
    if before ~= 0 then put(8 * before + 6, struct.pack('<i8', found)) else tail = found end
    put(8 * found + 4, struct.pack('<i8i8i8', before, ends, after))
  end
