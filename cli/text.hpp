// How the tools print: numbers with thousands separators, times with units, aligned tables, and a
// line of progress. Threading: one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::tool {

/// "1,234,567".
[[nodiscard]] std::string thousands(std::uint64_t number);

/// "12.34 %" with `digits` decimals, rounded half up, but so that only all of it is 100.0 % and
/// only none of it 0.0 %; "-" of nothing.
[[nodiscard]] std::string percent(std::uint64_t part, std::uint64_t whole, unsigned digits = 1);

/// Three digits and a unit: "250 us", "12.3 ms", "3.28 s", "3m 40s", "2h".
[[nodiscard]] std::string duration(Span span);

/// Events in a time as a rate: "7.75 M/s", "812 k/s", "90 /s".
[[nodiscard]] std::string rate(std::uint64_t count, Span elapsed);

/// "17 May 2015 10:05:03": a second since 1970 in the time zone of this UTC offset.
[[nodiscard]] std::string moment(std::int64_t second, std::int64_t offset, bool with_seconds);

/// `text` with everything but printable ASCII as \xHH, cut at `most` characters.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most);

/// "1 request", "2 requests", "2 processes".
[[nodiscard]] std::string plural(std::uint64_t count, std::string_view noun);

/// Rows of cells; the first column is aligned left, the others right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// What a long run says of itself, on stderr: on a terminal a line that is written over, from half
/// a second on; elsewhere a new line every five seconds.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// True if it is time for another line.
  [[nodiscard]] bool due();
  void show(const std::string& line);
  /// Real time since the start.
  [[nodiscard]] Span elapsed() const { return clock_.now() - start_; }

 private:
  SystemClock clock_;
  Time start_;
  Time next_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace sluice::tool
