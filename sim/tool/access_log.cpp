// The parser is a cursor that moves over one line.
#include "sim/tool/access_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <stdexcept>

#include "sim/tool/text.hpp"

namespace sluice::tool {
namespace {

constexpr std::size_t longest_client = 255;
constexpr int first_year = 1970;
constexpr int last_year = 2111;
constexpr int widest_offset_hours = 14;

bool is_graph(char c) { return c > ' ' && c < 0x7f; }

/// Reads exactly `text` as a number of digits; -1 if it is anything else.
int digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

unsigned month_of(std::string_view name) {
  static constexpr std::array<std::string_view, 12> months{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto found = std::find(months.begin(), months.end(), name);
  return found == months.end() ? 0 : static_cast<unsigned>(found - months.begin()) + 1;
}

const char* parse_offset(std::string_view text, std::int64_t& offset) {
  const int hours = digits(text.substr(1, 2));
  const int minutes = digits(text.substr(3, 2));
  if ((text[0] != '+' && text[0] != '-') || hours < 0 || minutes < 0) {
    return "the time zone is not of the form +0000";
  }
  if (hours > widest_offset_hours || minutes > 59) return "the time zone is out of range";
  offset = (text[0] == '-' ? -60 : 60) * (std::int64_t{hours} * 60 + minutes);
  return nullptr;
}

/// "17/May/2015:10:05:03 +0000"
const char* parse_stamp(std::string_view text, LogLine& line) {
  if (text.size() != 26 || text[2] != '/' || text[6] != '/' || text[11] != ':' || text[14] != ':' ||
      text[17] != ':' || text[20] != ' ') {
    return "the stamp is not of the form [17/May/2015:10:05:03 +0000]";
  }
  const int day = digits(text.substr(0, 2));
  const unsigned month = month_of(text.substr(3, 3));
  const int year = digits(text.substr(7, 4));
  const int hour = digits(text.substr(12, 2));
  const int minute = digits(text.substr(15, 2));
  const int second = digits(text.substr(18, 2));
  if (day < 0 || year < 0 || hour < 0 || minute < 0 || second < 0) {
    return "the stamp has letters where digits belong";
  }
  if (month == 0) return "the stamp names no month (Jan to Dec)";
  if (year < first_year || year > last_year) return "the year is not within 1970 to 2111";
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return "there is no such day in that month";
  // 60 is a leap second, which Unix time counts as the first of the next minute.
  if (hour > 23 || minute > 59 || second > 60) return "the time of day is out of range";
  if (const char* fault = parse_offset(text.substr(21), line.utc_offset)) return fault;
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  line.second = ((days * 24 + hour) * 60 + minute) * 60 + second - line.utc_offset;
  return line.second < 0 ? "the stamp lies before 1970 in UTC" : nullptr;
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  /// Up to `end`, which is taken too.
  bool take_until(std::string_view end, std::string_view& field) {
    const std::size_t at = rest_.find(end);
    if (at == std::string_view::npos) return false;
    field = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return true;
  }

  /// Everything up to a space or the end.
  std::string_view take_bare() {
    const std::size_t length = std::min(rest_.find(' '), rest_.size());
    const std::string_view field = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return field;
  }

  /// A quoted string, in which a backslash keeps the next character from ending it.
  bool take_quoted() {
    if (!take("\"")) return false;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

 private:
  std::string_view rest_;
};

const char* parse_client(Cursor& cursor, LogLine& line) {
  if (!cursor.take_until(" ", line.client)) return "there is no second field";
  if (line.client.empty()) return "the line begins with a space";
  if (line.client.size() > longest_client) return "the client is longer than 255 bytes";
  if (!std::all_of(line.client.begin(), line.client.end(), is_graph)) {
    return "the client holds bytes that are not printable ASCII";
  }
  return nullptr;
}

/// True if what is left are bare and quoted fields, separated by one space each.
bool take_tail(Cursor& cursor) {
  while (!cursor.at_end()) {
    if (!cursor.take(" ")) return false;
    if (cursor.rest().starts_with('"')) {
      if (!cursor.take_quoted()) return false;
    } else if (cursor.take_bare().empty() && !cursor.at_end()) {
      return false;
    }
  }
  return true;
}

}  // namespace

const char* parse_log_line(std::string_view text, LogLine& line) {
  Cursor cursor(text);
  if (const char* fault = parse_client(cursor, line)) return fault;
  std::string_view ident_and_user;
  if (!cursor.take_until(" [", ident_and_user)) return "there is no [stamp]";
  const std::size_t space = ident_and_user.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == ident_and_user.size()) {
    return "ident and user do not stand before the stamp";
  }
  std::string_view stamp;
  if (!cursor.take_until("] ", stamp)) return "the stamp has no end";
  if (const char* fault = parse_stamp(stamp, line)) return fault;
  if (!cursor.rest().starts_with('"')) return "the request is not quoted";
  if (!cursor.take_quoted()) return "the quoted request does not end";
  if (!cursor.take(" ")) return "nothing follows the request";
  const std::string_view status = cursor.take_bare();
  if (status.size() != 3 || digits(status) < 100) return "the status is not 100 to 999";
  if (!cursor.take(" ")) return "nothing follows the status";
  const std::string_view bytes = cursor.take_bare();
  if (bytes != "-" && (bytes.empty() || bytes.size() > 19 ||
                       bytes.find_first_not_of("0123456789") != std::string_view::npos)) {
    return "the size is neither a number nor \"-\"";
  }
  line.damaged_tail = !take_tail(cursor);
  return nullptr;
}

namespace {

/// Collects lines into a log.
class Collector {
 public:
  void add(std::string_view text, bool too_long) {
    ++number_;
    if (text.empty() && !too_long) return;
    ++log_.lines;
    LogLine line;
    const char* fault =
        too_long ? "the line is longer than 65,536 bytes" : parse_log_line(text, line);
    if (fault != nullptr) return refuse(text, fault);
    if (log_.requests.size() == UINT32_MAX) throw std::length_error("more than 2^32 - 1 requests");
    note_offset(line.utc_offset);
    if (line.damaged_tail) ++log_.damaged_tails;
    if (line.second < latest_) ++log_.out_of_order;
    latest_ = std::max(latest_, line.second);
    log_.requests.push_back({line.second, client_of(line.client)});
  }

  AccessLog finish() {
    std::stable_sort(log_.requests.begin(), log_.requests.end(),
                     [](const LogRequest& a, const LogRequest& b) { return a.second < b.second; });
    if (!log_.one_offset) log_.utc_offset = 0;
    return std::move(log_);
  }

 private:
  void refuse(std::string_view text, const char* fault) {
    if (++log_.unreadable > most_unreadable_shown) return;
    log_.first_unreadable.push_back({number_, fault, printable(text, 60)});
  }

  void note_offset(std::int64_t offset) {
    if (log_.requests.empty()) log_.utc_offset = offset;
    if (offset != log_.utc_offset) log_.one_offset = false;
  }

  std::uint32_t client_of(std::string_view name) {
    const auto [place, is_new] =
        numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(log_.clients.size()));
    if (is_new) log_.clients.emplace_back(name);
    return place->second;
  }

  AccessLog log_;
  std::uint64_t number_ = 0;
  std::int64_t latest_ = 0;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace

AccessLog read_access_log(std::FILE* file, const LinesRead& progress) {
  Collector collector;
  read_lines(
      file, [&](std::string_view line, bool too_long) { collector.add(line, too_long); }, progress);
  return collector.finish();
}

}  // namespace sluice::tool
