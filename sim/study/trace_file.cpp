#include "sim/study/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "cli/text.hpp"
#include "sim/log/access_log.hpp"
#include "sim/log/lines.hpp"
#include "sim/log/log_coverage.hpp"
#include "sluice/sim/choice.hpp"

namespace sluice::sim::scenario {
namespace {

using Traced = ArrivalOptions::Traced;
using File = std::unique_ptr<std::FILE, tool::FileCloser>;

constexpr Span longest_trace = std::chrono::hours{24 * 31};
constexpr std::size_t longest_key = 255;
constexpr std::uint32_t highest_cost = 1'000'000;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string quoted(std::string_view text) { return "\"" + tool::printable(text, 60) + "\""; }

/// "12.5", with up to six decimals.
std::string seconds_text(Span span) {
  std::string text = fmt::format("{}.{:06}", span.count() / 1'000'000, span.count() % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// Digits only.
std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

/// Seconds with decimals, of which those beyond six are dropped.
std::optional<Span> parse_seconds(std::string_view text) {
  const std::size_t point = text.find('.');
  const auto whole = parse_digits(text.substr(0, point));
  if (!whole || *whole > static_cast<std::uint64_t>(word_limit / 1'000'000)) return {};
  Word micros = static_cast<Word>(*whole) * 1'000'000;
  if (point == std::string_view::npos) return Span{micros};
  const std::string_view decimals = text.substr(point + 1);
  if (decimals.empty() || decimals.find_first_not_of("0123456789") != std::string_view::npos) {
    return {};
  }
  Word unit = 100'000;
  for (const char digit : decimals.substr(0, 6)) {
    micros += (digit - '0') * unit;
    unit /= 10;
  }
  return Span{micros};
}

class CsvReader {
 public:
  explicit CsvReader(std::string name) : name_(std::move(name)) {}

  void add(std::string_view line, bool too_long) {
    ++number_;
    if (number_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(3);
    if (line.empty() || line.starts_with('#')) return;
    if (too_long) fail("the line is longer than 65,536 bytes");
    if (columns_ == 0) return read_header(line);
    add_call(line);
  }

  TraceFile finish() {
    if (columns_ == 0) {
      throw std::invalid_argument(name_ +
                                  ": there is no header in it; begin with the line \"t,key\"");
    }
    if (calls_.empty()) {
      throw std::invalid_argument(name_ + ": there is no call below its header");
    }
    return {std::make_shared<const std::vector<Traced>>(std::move(calls_)),
            static_cast<std::uint32_t>(keys_.size()),
            {}};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(fmt::format("{}:{}: {}", name_, number_, what));
  }

  void read_header(std::string_view line) {
    columns_ = line == "t,key" ? 2 : line == "t,key,cost" ? 3 : 0;
    if (columns_ == 0) {
      fail("the header must be t,key or t,key,cost, got " + quoted(line) +
           "; rename, order or remove columns");
    }
  }

  void add_call(std::string_view line) {
    std::string_view fields[3];
    std::size_t count = 0;
    for (std::string_view rest = line;; ++count) {
      const std::size_t comma = rest.find(',');
      if (count < 3) fields[count] = rest.substr(0, comma);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (++count != columns_) {
      fail(fmt::format("the header has {} columns, and the line {}; a key cannot hold a comma",
                       columns_, count));
    }
    calls_.push_back({read_time(fields[0]), read_key(fields[1]), read_cost(fields[2])});
  }

  Span read_time(std::string_view text) const {
    const auto at = parse_seconds(text);
    if (!at) fail("t must be seconds as 12 or 12.345678, got " + quoted(text));
    if (*at > longest_trace) {
      fail(fmt::format("t must be at most {} (31 days), got {}; subtract the time of the start",
                       seconds_text(longest_trace), text));
    }
    if (!calls_.empty() && *at < calls_.back().at) {
      fail(fmt::format("t goes back from {} to {}; sort the lines by t",
                       seconds_text(calls_.back().at), text));
    }
    return *at;
  }

  std::uint32_t read_key(std::string_view text) {
    if (text.empty() || text.size() > longest_key) {
      fail(fmt::format("the key must have 1 to {} bytes, got {}", longest_key, text.size()));
    }
    const auto number = static_cast<std::uint32_t>(keys_.size());
    const auto [place, is_new] = keys_.try_emplace(std::string(text), number);
    if (is_new && number == Choice::largest) {
      fail(fmt::format("more than {} different keys; take a part of them", Choice::largest));
    }
    return place->second;
  }

  std::uint32_t read_cost(std::string_view text) const {
    if (columns_ == 2) return 1;
    const auto cost = parse_digits(text);
    if (!cost || *cost < 1 || *cost > highest_cost) {
      fail(fmt::format("cost must be a whole number from 1 to {}, got {}", highest_cost,
                       quoted(text)));
    }
    return static_cast<std::uint32_t>(*cost);
  }

  std::string name_;
  std::uint64_t number_ = 0;  // of the line, from 1
  std::size_t columns_ = 0;   // 0: the header is still to come
  std::vector<Traced> calls_;
  std::unordered_map<std::string, std::uint32_t> keys_;
};

TraceFile read_csv(std::FILE* file, const std::string& name) {
  CsvReader reader(name);
  tool::read_lines(file, [&](std::string_view line, bool too_long) { reader.add(line, too_long); });
  return reader.finish();
}

TraceFile read_log(std::FILE* file, const std::string& name) {
  const tool::AccessLog log = tool::read_access_log(file);
  if (log.requests.empty()) {
    throw std::invalid_argument(
        name + (log.lines == 0
                    ? std::string(": there is nothing in it")
                    : fmt::format(": no line of {} is in the Common or Combined Log Format, and "
                                  "line {}: {}; the name of a CSV file ends in .csv",
                                  tool::thousands(log.lines), log.first_unreadable.front().number,
                                  log.first_unreadable.front().reason)));
  }
  std::vector<Traced> calls;
  calls.reserve(log.requests.size());
  const std::int64_t start = log.requests.front().second;
  for (const tool::LogRequest& request : log.requests) {
    calls.push_back({std::chrono::seconds{request.second - start}, request.client, 1});
  }
  TraceFile trace{std::make_shared<const std::vector<Traced>>(std::move(calls)),
                  static_cast<std::uint32_t>(log.clients.size()),
                  {}};
  if (log.unreadable != 0) {
    trace.warnings.push_back(fmt::format("{}: {} left out, the first is line {}: {}", name,
                                         tool::plural(log.unreadable, "unreadable line"),
                                         log.first_unreadable.front().number,
                                         log.first_unreadable.front().reason));
  }
  if (const std::string text = tool::coverage_text(log); !text.empty()) {
    trace.warnings.push_back(name + ": " + text);
  }
  return trace;
}

}  // namespace

TraceFile read_trace(const std::filesystem::path& path) {
  const std::string name = path.string();
  const File file(std::fopen(name.c_str(), "rb"));
  const auto fail = [&name](int error) {
    throw std::invalid_argument(name + ": " + std::generic_category().message(error) +
                                "; arrivals.file must name a CSV file or an access log");
  };
  if (!file) fail(errno);
  try {
    return path.extension() == ".csv" ? read_csv(file.get(), name) : read_log(file.get(), name);
  } catch (const std::system_error& error) {
    fail(error.code().value());
    throw;
  } catch (const std::length_error& error) {
    throw std::invalid_argument(name + ": " + error.what());
  }
}

TraceFile TraceFiles::read(const std::string& file) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(file);
  if (found != files_.end()) return found->second;
  return files_.emplace(file, read_trace(file)).first->second;
}

}  // namespace sluice::sim::scenario
