-- In the driver of one step on a cell: writes.
if in_place then
  redis.call('SETRANGE', KEYS[1], '1', packed)
elseif packed then
  redis.call('PSETEX', KEYS[1], keep, packed)
end
