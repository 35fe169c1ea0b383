-- token_bucket.take as a script of one step.
local KIND, decide = 1, token_bucket_take
