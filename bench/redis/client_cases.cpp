// What one decision costs the client, and how many one connection decides: the store against
// plain hiredis that sends the very same request.
#include <benchmark/benchmark.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "bench/redis/cases.hpp"
#include "sluice/limiters/token_bucket.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t decisions_deep = 8192;
constexpr std::size_t decisions_one_by_one = 1024;

TokenBucket make_bucket(Rig& rig) {
  return {rig.store(), "plenty", Quota::per_minute(60'000'007).burst(10'000'000)};
}

/// `batch` makes `size` decisions.
template <class Batch>
void add(Rig& rig, const std::string& name, std::size_t decisions, std::size_t size, Batch batch) {
  const auto run = [&rig, size, batch](benchmark::State& state) {
    Round round(rig, state);
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(size))) batch();
    round.finish(rig.server_us());
  };
  benchmark::RegisterBenchmark(("redis/client/" + name).c_str(), run)
      ->Iterations(static_cast<benchmark::IterationCount>(decisions))
      ->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_raw(Rig& rig, const std::string& name, std::size_t decisions, std::size_t depth) {
  const Step step = make_bucket(rig).acquire_step("alice");
  const auto command = std::make_shared<Command>(rig.request({&step, 1}));
  add(rig, name, decisions, depth, [&rig, command, depth] { rig.raw().pipeline(*command, depth); });
}

void add_batch(Rig& rig, const std::string& name, std::size_t depth) {
  const auto bucket = std::make_shared<TokenBucket>(make_bucket(rig));
  add(rig, name, decisions_deep, depth, [bucket, depth] {
    const Step step = bucket->acquire_step("alice");
    const std::vector<Plan> plans(depth, Plan(step));
    std::vector<Decision> results(depth);
    std::vector<std::error_code> errors(depth);
    decide_batch(bucket->store(), plans, results, errors);
    for (const Decision& result : results) {
      if (!result.allowed) throw std::runtime_error("another answer than meant");
    }
  });
}

/// Keeps `depth` calls under way: each answer asks the next one, on the store's own thread.
class Chain {
 public:
  Chain(const TokenBucket& bucket, std::size_t calls, std::size_t depth)
      : bucket_(bucket),
        depth_(depth),
        unsent_(static_cast<std::ptrdiff_t>(calls)),
        unanswered_(calls) {}

  void run() {
    for (std::size_t i = 0; i < depth_; ++i) ask();
    std::unique_lock lock(mutex_);
    over_.wait(lock, [&] { return unanswered_ == 0; });
    if (failed_) throw std::runtime_error("another answer than meant");
  }

 private:
  void ask() {
    if (unsent_.fetch_sub(1) <= 0) return;
    bucket_.store().execute(bucket_.acquire_step("alice"), Completion(&Chain::answered, this));
  }

  static void answered(void* context, const Outcome& outcome) noexcept {
    auto& self = *static_cast<Chain*>(context);
    if (outcome.error || !outcome.decision.allowed) self.failed_ = true;
    self.ask();
    if (self.unanswered_ > 1) {
      --self.unanswered_;
      return;
    }
    const std::lock_guard lock(self.mutex_);
    self.unanswered_ = 0;
    self.over_.notify_one();
  }

  const TokenBucket& bucket_;
  const std::size_t depth_;
  std::atomic<std::ptrdiff_t> unsent_;
  std::atomic<std::size_t> unanswered_;  // changed by the store's thread alone
  std::mutex mutex_;
  std::condition_variable over_;
  std::atomic<bool> failed_{false};
};

void add_callbacks(Rig& rig, const std::string& name, std::size_t depth) {
  const auto bucket = std::make_shared<TokenBucket>(make_bucket(rig));
  add(rig, name, decisions_deep, decisions_deep,
      [bucket, depth] { Chain(*bucket, decisions_deep, depth).run(); });
}

/// Threads that each wait for one answer before they ask again: what they have in common is the
/// connection.
void add_threads(Rig& rig, const std::string& name, std::size_t threads) {
  const auto bucket = std::make_shared<TokenBucket>(make_bucket(rig));
  const std::size_t decisions = decisions_one_by_one * threads;
  add(rig, name, decisions, decisions, [bucket, threads] {
    std::vector<std::jthread> crowd;
    for (std::size_t i = 0; i < threads; ++i) {
      crowd.emplace_back([bucket] {
        for (std::size_t n = 0; n < decisions_one_by_one; ++n)
          static_cast<void>(bucket->try_acquire("alice"));
      });
    }
  });
}

}  // namespace

std::vector<Comparison> register_client_cases(Rig& rig) {
  add_raw(rig, "hiredis, depth 1", decisions_one_by_one, 1);
  add_raw(rig, "hiredis, depth 16", decisions_deep, 16);
  add_raw(rig, "hiredis, depth 128", decisions_deep, 128);
  add_batch(rig, "decide_batch of 16", 16);
  add_batch(rig, "decide_batch of 128", 128);
  add_callbacks(rig, "16 calls in flight", 16);
  add_callbacks(rig, "128 calls in flight", 128);
  for (const std::size_t threads : {1U, 2U, 8U}) {
    add_threads(rig, std::to_string(threads) + (threads == 1 ? " thread" : " threads"), threads);
  }
  const char* const us = "client us";
  const char* const rate = "1000/s";
  return {{us, "decide_batch of 16", "hiredis, depth 16"},
          {us, "decide_batch of 128", "hiredis, depth 128"},
          {us, "16 calls in flight", "hiredis, depth 16"},
          {us, "128 calls in flight", "hiredis, depth 128"},
          {rate, "decide_batch of 16", "hiredis, depth 16"},
          {rate, "decide_batch of 128", "hiredis, depth 128"},
          {rate, "16 calls in flight", "hiredis, depth 16"},
          {rate, "128 calls in flight", "hiredis, depth 128"},
          {us, "1 thread", "hiredis, depth 1"},
          {rate, "1 thread", "hiredis, depth 1"},
          {rate, "2 threads", "hiredis, depth 1"},
          {rate, "8 threads", "hiredis, depth 1"}};
}

}  // namespace sluice::bench
