# The rules, by the stem of their files. Folders with one file a rule list their files by this.
set(SLUICE_RULES
  constant
  fixed_window
  gate
  learned_rate
  leases
  shared_sliding_window
  shared_token_bucket
  sliding_window
  sliding_window_counter
  slot_lock
  token_bucket
  utilization
  wait_line
)
