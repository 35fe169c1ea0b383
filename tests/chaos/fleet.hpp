// Fleet: the processes of callers, and of control threads. Report: the table of figures.
// Threading: the main thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/chaos/board.hpp"
#include "tests/chaos/callers.hpp"

namespace sluice::chaos {

/// A row of the table.
struct Row {
  std::string figure;
  std::string run;
  std::string promise;
  std::string measured;
  bool held = true;
  /// It does not depend on how fast the machine is: it fails the program if it does not hold.
  bool is_hard = false;
};

class Report {
 public:
  void add(Row row);
  /// "at most `most`" of `unit`.
  void at_most(const std::string& figure, const std::string& run, const std::string& what,
               double measured, double most, const std::string& unit, bool is_hard = false);
  void print() const;
  /// `strict`: rows that depend on the machine count as well.
  [[nodiscard]] bool holds(bool strict) const;

 private:
  std::vector<Row> rows_;
};

[[nodiscard]] std::string text_of(double number);

/// Forked processes that end with this one. Children never run the destructors of this process.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  /// Kills those that are left.
  ~Children();
  void start(const std::function<void()>& body);
  /// Waits for all; kills those that do not end in time, and returns how many these were.
  std::size_t join(Span patience);

 private:
  std::vector<pid_t> pids_;
};

/// Callers in processes of their own, beside one control thread on each CPU.
class Fleet {
 public:
  explicit Fleet(Load load);
  /// Starts everything, and returns when each process has had a decision of the server.
  void start();
  /// Ends the calls. Those that have not ended 10 s later are hung.
  void stop();

  [[nodiscard]] Board& board() const noexcept { return *board_; }
  /// Around what may lose the server's data.
  void upset(const std::function<void()>& disturbance);

  [[nodiscard]] std::uint64_t granted() const;
  [[nodiscard]] std::uint64_t decided() const;
  [[nodiscard]] std::uint64_t sum(std::atomic<std::uint64_t> Tally::*counter) const;
  /// From the first call to the last.
  [[nodiscard]] double seconds() const;
  /// For each process, how long behind `since` a time without a decision on the group's keys ended
  /// that began by `since + slack`; 0 if there was none. Microseconds.
  [[nodiscard]] std::vector<double> comebacks(std::int64_t since, Span slack = Span{0},
                                              std::size_t group = 0) const;

  /// Calls hung, replies mis-paired, calls late: the judgements of every figure.
  void judge(Report& report, const std::string& figure, const std::string& run) const;
  /// "decided 12345, unknown 3, not_connected 17"
  [[nodiscard]] std::string outcomes() const;

 private:
  void print_event(const char* what) const;
  void watch_cpu(std::size_t cpu) const;
  void judge_late(Report& report, const std::string& figure, const std::string& run) const;
  [[nodiscard]] std::vector<Stretch> stalls() const;

  Load load_;
  Shared<Board> board_;
  Children callers_;
  Children control_;
  std::size_t killed_ = 0;
};

void sleep_for(Span span);

[[nodiscard]] double quantile(std::vector<double> values, double q);

}  // namespace sluice::chaos
