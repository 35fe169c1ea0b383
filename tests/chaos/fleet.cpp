#include "tests/chaos/fleet.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

namespace sluice::chaos {

using namespace std::chrono_literals;

void sleep_for(Span span) { std::this_thread::sleep_for(span); }

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::ceil(q * last))];
}

Children::~Children() {
  for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
  for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
}

void Children::start(const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) {
    pids_.push_back(pid);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a process of callers: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

std::size_t Children::join(Span patience) {
  const std::int64_t end = now_us() + patience.count();
  std::size_t killed = 0;
  while (!pids_.empty()) {
    std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) == pid; });
    if (pids_.empty()) break;
    if (now_us() > end) {
      ::kill(pids_.back(), SIGKILL);
      ::waitpid(pids_.back(), nullptr, 0);
      pids_.pop_back();
      ++killed;
    }
    sleep_for(2ms);
  }
  return killed;
}

Fleet::Fleet(Load load) : load_(std::move(load)) {
  if (load_.processes > most_processes || load_.threads > most_threads) {
    throw std::invalid_argument("at most 8 processes of 32 threads");
  }
}

void Fleet::start() {
  control_.start([this] {
    std::vector<std::thread> threads;
    const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned cpu = 0; cpu < std::min<std::size_t>(cpus, most_cpus); ++cpu) {
      threads.emplace_back([this, cpu] { watch_cpu(cpu); });
    }
    for (std::thread& thread : threads) thread.join();
  });
  for (std::size_t i = 0; i < load_.processes; ++i) {
    callers_.start([this, i] { run_callers(load_, *board_, i); });
  }
  const std::int64_t end = now_us() + 30'000'000;
  for (std::size_t i = 0; i < load_.processes; ++i) {
    while (board_->tallies[i].decided == 0) {
      if (now_us() > end) throw std::runtime_error("the callers get no decision");
      sleep_for(1ms);
    }
  }
}

void Fleet::stop() {
  board_->over = true;
  killed_ += callers_.join(load_.deadline + 10s);
  control_.join(1s);
}

void Fleet::upset(const std::function<void()>& disturbance) {
  print_event(load_.events, "the server is disturbed");
  ++board_->upset;
  disturbance();
  ++board_->upset;
  print_event(load_.events, "the server is left alone");
}

/// Sleeps for a millisecond at a time, and notes when it is woken late.
void Fleet::watch_cpu(std::size_t cpu) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
  constexpr std::int64_t step = 1'000;
  constexpr std::int64_t shortest = 200;
  while (!board_->over) {
    const std::int64_t due = now_us() + step;
    sleep_for(Span{step});
    const std::int64_t woken = now_us();
    if (woken - due > shortest) board_->stalls[cpu].add({due, woken});
  }
}

std::uint64_t Fleet::sum(std::atomic<std::uint64_t> Tally::*counter) const {
  std::uint64_t result = 0;
  for (const Tally& tally : board_->tallies) result += tally.*counter;
  return result;
}

std::uint64_t Fleet::granted() const { return sum(&Tally::granted); }
std::uint64_t Fleet::decided() const { return sum(&Tally::decided); }

double Fleet::seconds() const {
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (const Tally& tally : board_->tallies) {
    if (tally.first_call == 0) continue;
    first = first == 0 ? tally.first_call.load() : std::min(first, tally.first_call.load());
    last = std::max(last, tally.last_call.load());
  }
  return static_cast<double>(last - first) / 1e6;
}

std::vector<double> Fleet::comebacks(std::int64_t since, Span slack, std::size_t group) const {
  constexpr double never = 1e12;
  std::vector<double> result;
  for (std::size_t i = 0; i < load_.processes; ++i) {
    const Tally& tally = board_->tallies[i];
    std::int64_t last = since;
    for (const Stretch& gap : tally.gaps[group].all()) {
      if (gap.end > since && gap.begin <= since + slack.count()) last = std::max(last, gap.end);
    }
    const bool came_back = tally.last_decision[group] > since;
    result.push_back(came_back ? static_cast<double>(last - since) : never);
  }
  return result;
}

std::vector<Stretch> Fleet::stalls() const {
  std::vector<Stretch> all;
  for (const auto& cpu : board_->stalls) {
    all.insert(all.end(), cpu.all().begin(), cpu.all().end());
  }
  std::ranges::sort(all, {}, &Stretch::begin);
  std::vector<Stretch> merged;
  for (const Stretch& each : all) {
    if (merged.empty() || each.begin > merged.back().end) {
      merged.push_back(each);
    } else {
      merged.back().end = std::max(merged.back().end, each.end);
    }
  }
  return merged;
}

void Fleet::judge_late(Report& report, const std::string& figure, const std::string& run) const {
  const std::vector<Stretch> all = stalls();
  std::vector<double> raw;
  std::vector<double> left;
  for (const Tally& tally : board_->tallies) {
    for (const Late& late : tally.late.all()) {
      std::int64_t span = late.back - late.due;
      raw.push_back(static_cast<double>(span));
      auto it = std::ranges::upper_bound(all, late.due, {}, &Stretch::end);
      for (; it != all.end() && it->begin < late.back; ++it) {
        span -= std::min(late.back, it->end) - std::max(late.due, it->begin);
      }
      left.push_back(static_cast<double>(span));
    }
  }
  const double p99 = quantile(left, 0.99) / 1e3;
  report.add({figure, run, "behind their deadline, p99: at most 5 ms",
              text_of(p99) + " ms of " + std::to_string(raw.size()) +
                  " calls (with stalls of the " + "machine: " + text_of(quantile(raw, 0.99) / 1e3) +
                  " ms)",
              p99 <= 5});
}

void Fleet::judge(Report& report, const std::string& figure, const std::string& run) const {
  std::uint64_t hung = sum(&Tally::hung) + killed_;
  std::uint64_t wrong = sum(&Tally::mispaired) + sum(&Tally::answered_twice);
  report.add({figure, run, "0 calls hung, 0 replies mis-paired",
              std::to_string(hung) + ", " + std::to_string(wrong) + "; " + outcomes(),
              hung == 0 && wrong == 0, true});
  judge_late(report, figure, run);
}

std::string Fleet::outcomes() const {
  std::string text = std::to_string(decided()) + " decided";
  std::uint64_t degraded = 0;
  for (const Tally& tally : board_->tallies) {
    for (const auto& group : tally.degraded) degraded += group;
  }
  if (degraded > 0) text += ", " + std::to_string(degraded) + " degraded";
  for (std::size_t code = 1; code < board_->tallies.front().errors.size(); ++code) {
    std::uint64_t count = 0;
    for (const Tally& tally : board_->tallies) count += tally.errors[code];
    if (count == 0) continue;
    text += ", " + std::to_string(count) + " \"" +
            error_category().message(static_cast<int>(code)) + "\"";
  }
  return text;
}

std::string text_of(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer,
                number < 10    ? "%.2f"
                : number < 100 ? "%.1f"
                               : "%.0f",
                number);
  return buffer;
}

void Report::add(Row row) {
  std::printf("%s %s | %s | %s | %s\n", row.held ? "held  " : (row.is_hard ? "BROKEN" : "missed"),
              row.figure.c_str(), row.run.c_str(), row.promise.c_str(), row.measured.c_str());
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

void Report::at_most(const std::string& figure, const std::string& run, const std::string& what,
                     double measured, double most, const std::string& unit, bool is_hard) {
  add({figure, run, what + ": at most " + text_of(most) + unit, text_of(measured) + unit,
       measured <= most, is_hard});
}

void Report::print() const {
  std::printf("\n| figure | run | promise | measured | held |\n|---|---|---|---|---|\n");
  for (const Row& row : rows_) {
    std::printf("| %s | %s | %s | %s | %s |\n", row.figure.c_str(), row.run.c_str(),
                row.promise.c_str(), row.measured.c_str(), row.held ? "yes" : "no");
  }
}

bool Report::holds(bool strict) const {
  return std::ranges::all_of(rows_,
                             [&](const Row& row) { return row.held || !(row.is_hard || strict); });
}

}  // namespace sluice::chaos
