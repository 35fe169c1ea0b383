#include "bench/instructions/cases.hpp"

#include "bench/memory/mutex_bucket.hpp"
#include "sluice/sluice.hpp"

namespace sluice::bench {
namespace {

/// So much capacity that a case never spends it, and so much spent that it does not drain.
const Quota busy = Quota::per_second(1000).burst(2'000'000'000);
constexpr Word spent_before = 1'000'000'000;
/// So fast a rate that whatever was spent has drained by the next call.
const Quota idle = Quota::per_second(1'000'000'000).burst(1'000'000);

std::unique_ptr<MemoryStore> a_store() { return make_memory_store({.max_keys = 1024}); }

/// Calls `ask(error)` and counts the answers that are not `expected`.
template <class Ask>
std::uint64_t count_others(std::uint64_t times, bool expected, const Ask& ask) {
  std::error_code error;
  std::uint64_t others = 0;
  for (std::uint64_t i = 0; i < times; ++i) {
    if (ask(error).allowed != expected || error) ++others;
  }
  return others;
}

std::uint64_t bound(std::uint64_t times, const Quota& quota, Word spent, bool expected) {
  const auto store = a_store();
  const TokenBucket bucket(*store, "api", quota);
  const BoundTokenBucket one = bucket.at("alice");
  std::error_code error;
  if (spent > 0 && !one.try_acquire(spent, error)) return times;
  return count_others(times, expected, [&](auto& failed) { return one.try_acquire(failed); });
}

std::uint64_t bound_spent(std::uint64_t times) { return bound(times, busy, spent_before, true); }
std::uint64_t bound_full(std::uint64_t times) { return bound(times, idle, 0, true); }
std::uint64_t bound_refused_for_long(std::uint64_t times) {
  return bound(times, Quota::per_hour(3), 3, false);
}
/// A token every 60 ms, which is less than the coarse clock may lag.
std::uint64_t bound_refused_for_short(std::uint64_t times) {
  return bound(times, Quota::per_minute(1'000).burst(1), 1, false);
}

std::uint64_t bound_throwing_form(std::uint64_t times) {
  const auto store = a_store();
  const TokenBucket bucket(*store, "api", busy);
  const BoundTokenBucket one = bucket.at("alice");
  if (!one.try_acquire(spent_before)) return times;
  return count_others(times, true, [&](auto&) { return one.try_acquire(); });
}

std::uint64_t bucket_by_name(std::uint64_t times) {
  const auto store = a_store();
  const TokenBucket bucket(*store, "api", busy);
  std::error_code error;
  if (!bucket.try_acquire("alice", spent_before, error)) return times;
  return count_others(times, true,
                      [&](auto& failed) { return bucket.try_acquire("alice", failed); });
}

std::uint64_t fixed_window_by_name(std::uint64_t times) {
  const auto store = a_store();
  const FixedWindow window(*store, "api", 1'000'000'000, Calendar::daily());
  return count_others(times, true,
                      [&](auto& failed) { return window.try_acquire("alice", failed); });
}

std::uint64_t mutex_bucket(std::uint64_t times) {
  MutexBucket bucket(1e9, 1e15);
  std::uint64_t others = 0;
  for (std::uint64_t i = 0; i < times; ++i) others += bucket.try_acquire() ? 0U : 1U;
  return others;
}

constexpr InstructionCase cases[] = {
    {"instructions/bound_spent", "bound bucket, allowed, partly spent", bound_spent, 229},
    {"instructions/bound_full", "bound bucket, allowed, full", bound_full, 247},
    {"instructions/bound_refused_for_short", "bound bucket, refused for 60 ms",
     bound_refused_for_short, 221},
    {"instructions/bound_refused_for_long", "bound bucket, refused for 20 minutes",
     bound_refused_for_long, 214},
    {"instructions/bound_throwing_form", "bound bucket, the form that throws", bound_throwing_form,
     294},
    {"instructions/bucket_by_name", "bucket by name, allowed, partly spent", bucket_by_name, 575},
    {"instructions/fixed_window_by_name", "fixed window by name, allowed", fixed_window_by_name,
     1750},
    {"instructions/mutex_bucket", "mutex, doubles and a clock", mutex_bucket, 0},
};

}  // namespace

std::span<const InstructionCase> instruction_cases() noexcept { return cases; }

}  // namespace sluice::bench
