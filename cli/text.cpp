// See text.hpp.
#include "cli/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <tuple>

namespace sluice::tool {
namespace {

constexpr Span terminal_first{500'000};
constexpr Span terminal_pace{200'000};
constexpr Span plain_pace{5'000'000};

std::string three_digits(double value) {
  return value < 10    ? fmt::format("{:.2f}", value)
         : value < 100 ? fmt::format("{:.1f}", value)
                       : fmt::format("{:.0f}", value);
}

}  // namespace

std::string thousands(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string percent(std::uint64_t part, std::uint64_t whole, unsigned digits) {
  if (whole == 0) return "-";
  std::uint64_t scale = 1;
  for (unsigned i = 0; i < digits; ++i) scale *= 10;
  const std::uint64_t all = 100 * scale;
  __extension__ using Wide = unsigned __int128;
  auto value = static_cast<std::uint64_t>((Wide{part} * all * 2 + whole) / (Wide{whole} * 2));
  if (part > 0) value = std::max<std::uint64_t>(value, 1);
  if (part < whole) value = std::min(value, all - 1);
  if (part > whole) value = std::max(value, all + 1);
  return fmt::format("{}.{:0{}} %", value / scale, value % scale, digits);
}

std::string duration(Span span) {
  const auto us = span.count();
  const auto value = static_cast<double>(us);
  if (us < 1'000) return fmt::format("{} us", us);
  if (us < 999'500) return three_digits(value / 1e3) + " ms";
  if (us < 59'950'000) return three_digits(value / 1e6) + " s";
  const auto seconds = (us + 500'000) / 1'000'000;
  const auto [large, small, large_unit, small_unit] =
      seconds < 3'600 ? std::tuple(seconds / 60, seconds % 60, 'm', 's')
                      : std::tuple(seconds / 3'600, seconds % 3'600 / 60, 'h', 'm');
  return small == 0 ? fmt::format("{}{}", large, large_unit)
                    : fmt::format("{}{} {}{}", large, large_unit, small, small_unit);
}

std::string rate(std::uint64_t count, Span elapsed) {
  if (elapsed.count() <= 0) return "-";
  const double value = static_cast<double>(count) * 1e6 / static_cast<double>(elapsed.count());
  if (value >= 999'500) return three_digits(value / 1e6) + " M/s";
  if (value >= 999.5) return three_digits(value / 1e3) + " k/s";
  return three_digits(value) + " /s";
}

std::string moment(std::int64_t second, std::int64_t offset, bool with_seconds) {
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_seconds time{std::chrono::seconds{second + offset}};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  std::string text =
      fmt::format("{} {} {} {:02}:{:02}", static_cast<unsigned>(date.day()),
                  months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                  clock.hours().count(), clock.minutes().count());
  if (with_seconds) text += fmt::format(":{:02}", clock.seconds().count());
  return text;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const std::string shown =
        byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    if (out.size() + shown.size() > most) return out + "...";
    out += shown;
  }
  return out;
}

std::string plural(std::uint64_t count, std::string_view noun) {
  const std::string_view ending = count == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", thousands(count), noun, ending);
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("  {:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

Progress::Progress() : start_(clock_.now()), terminal_(isatty(STDERR_FILENO) == 1) {
  next_ = start_ + (terminal_ ? terminal_first : plain_pace);
}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\r\x1b[K", stderr);
}

bool Progress::due() {
  const Time now = clock_.now();
  if (now < next_) return false;
  next_ = now + (terminal_ ? terminal_pace : plain_pace);
  return true;
}

void Progress::show(const std::string& line) {
  std::fputs(terminal_ ? fmt::format("\r{}\x1b[K", line).c_str() : (line + '\n').c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace sluice::tool
