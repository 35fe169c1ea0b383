// The rows of the token bucket.
#include "sluice/extend/operation.hpp"
#include "src/rules/token_bucket_kernel.hpp"

namespace sluice {

using token_bucket::args_of;

Verdict TokenBucketRule::acquire(State& state, const Args& args, Word now) noexcept {
  return token_bucket::taken(state, args, now, 0);
}

Verdict TokenBucketRule::acquire_lagging(State& state, const Args& args, Word now,
                                         Word lag) noexcept {
  return token_bucket::taken(state, args, now, lag);
}

Verdict TokenBucketRule::peek(const State& state, const Args& args, Word now) noexcept {
  return token_bucket::peeked(state, args, now);
}

Word TokenBucketRule::check(const Args& args) noexcept { return token_bucket::check(args); }

namespace {

Verdict apply_acquire(StateWords& words, const Arguments& args, Word now) noexcept {
  token_bucket::State state{words[0], words[1]};
  const Verdict verdict = token_bucket::taken(state, args_of(args), now, 0);
  words = {state.spent, state.stamp};
  return verdict;
}

Verdict apply_peek(StateWords& words, const Arguments& args, Word now) noexcept {
  return token_bucket::peeked({words[0], words[1]}, args_of(args), now);
}

Word check_cost(const Arguments& args) noexcept { return token_bucket::check(args_of(args)); }

/// The stamp may be ahead of the clock by max_ahead when it is written.
Word ttl(const Arguments& args) noexcept {
  return args_of(args).full_after + TokenBucketRule::max_ahead;
}

}  // namespace

constinit const Operation token_bucket_acquire{
    .name = "token_bucket.acquire",
    .id = 0,
    .kind = StateKind::token_bucket,
    .writes = true,
    .argument_count = 5,
    .apply = apply_acquire,
    .check = check_cost,
    .ttl = ttl,
    .grants = Operation::Grants::cost,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::plain_bucket,
    .arguments = {{.index = 4, .name = "cost", .role = Argument::Role::cost}},
};
constinit const Operation token_bucket_peek{
    .name = "token_bucket.peek",
    .id = 1,
    .kind = StateKind::token_bucket,
    .writes = false,
    .argument_count = 5,
    .apply = apply_peek,
    .check = check_cost,
    .ttl = ttl,
    .without_store = Operation::WithoutStore::fresh_state,
    .share = Operation::Share::plain_bucket,
    .arguments = {{.index = 4, .name = "cost", .role = Argument::Role::cost}},
};

}  // namespace sluice
