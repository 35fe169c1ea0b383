-- The twin of LeaseTable::place() in src/rules/lease_table.hpp in its place in a rule: where a lease
-- that ends at `ends` belongs in the order of expiry; it is at `found`, or at none yet.
  local after, before = tail, 0
  if first == 0 or ends >= latest then
    latest = ends
  else
    local other = word(8 * after + 5)
    latest = ends
    if other > ends then latest = other end
    local steps = 0
    while after ~= 0 and after ~= found and other > ends do
      if steps == slots then
        corrupt()
        return 0, 0, 0, 0
      end
      steps, before = steps + 1, after
      if after == first then
        after = 0
      else
        after = word(8 * after + 6)
        if after < 1 or after > slots then
          corrupt()
          return 0, 0, 0, 0
        end
        other = word(8 * after + 5)
      end
    end
  end
