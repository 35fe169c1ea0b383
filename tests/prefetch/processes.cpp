#include "tests/prefetch/processes.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <thread>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Monotonic = std::chrono::steady_clock;

template <class Unit>
std::int64_t now_in() {
  return std::chrono::duration_cast<Unit>(Monotonic::now().time_since_epoch()).count();
}

}  // namespace

Processes::Processes(const ProcessesOptions& options) : options_(options) {
  void* const shared =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  board_ = new (shared) Board;
  for (std::size_t i = 0; i < options.processes; ++i) pids_.push_back(start());
}

Processes::~Processes() {
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::munmap(board_, sizeof(Board));
}

pid_t Processes::start() {
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  run();
  ::_exit(0);
}

void Processes::run() const {
  RedisOptions redis;
  redis.unix_socket = options_.unix_socket;
  const auto store = make_redis_store(redis);
  std::optional<PrefetchStore> prefetch;
  if (options_.prefetch) prefetch.emplace(*store, *options_.prefetch);
  Store& used = prefetch ? static_cast<Store&>(*prefetch) : *store;
  const TokenBucket bucket(used, "upstream", options_.quota);
  std::uint64_t decided = 0;
  while (!board_->over) {
    std::error_code error;
    const std::int64_t before = decided % 64 == 0 ? now_in<std::chrono::nanoseconds>() : 0;
    const Decision decision = bucket.try_acquire("hot", error);
    if (decision.allowed) {
      const std::uint64_t place = board_->calls++;
      if (place < max_calls) board_->times[place] = now_in<std::chrono::microseconds>();
    }
    if (before != 0) {
      const std::uint64_t sample = board_->samples++;
      board_->took[sample % max_samples] = now_in<std::chrono::nanoseconds>() - before;
    }
    if (error) ++board_->errors;
    if (++decided % 64 == 0) board_->decisions += 64;
    if (options_.sleeps && !decision.allowed) {
      std::this_thread::sleep_for(std::clamp(decision.retry_after, Span{50}, Span{1000}));
    }
  }
  board_->decisions += decided % 64;
  board_->operations += prefetch ? prefetch->stats().trips + prefetch->stats().passed_on : decided;
}

void Processes::replace(std::size_t index) {
  ::kill(pids_[index], SIGKILL);
  ::waitpid(pids_[index], nullptr, 0);
  pids_[index] = start();
}
void Processes::stop(std::size_t index) { ::kill(pids_[index], SIGSTOP); }
void Processes::resume(std::size_t index) { ::kill(pids_[index], SIGCONT); }

void Processes::end() {
  board_->over = true;
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGCONT);
    ::waitpid(pid, nullptr, 0);
  }
  pids_.clear();
}

testing::History Processes::calls() const {
  testing::History history;
  const std::size_t count = std::min<std::size_t>(board_->calls, max_calls);
  for (std::size_t i = 0; i < count; ++i) {
    // A process that was killed between its place and its call has not called.
    const std::int64_t time = board_->times[i];
    if (time != 0) history.push_back({to_time(time), 1, true, to_time(time), Span{0}, 0, 0});
  }
  std::sort(history.begin(), history.end(),
            [](const auto& a, const auto& b) { return a.at < b.at; });
  return history;
}

double Processes::median() const {
  std::vector<std::int64_t> sorted;
  const std::size_t count = std::min<std::size_t>(board_->samples, max_samples);
  for (std::size_t i = 0; i < count; ++i) sorted.push_back(board_->took[i]);
  if (sorted.empty()) return 0;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count / 2),
                   sorted.end());
  return static_cast<double>(sorted[count / 2]);
}

}  // namespace sluice::test
