// The parser is a cursor that moves over one line.
#include "sim/log/access_log.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "cli/text.hpp"

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

  /// A quoted string, in which a backslash keeps the next character from ending it. `content` is
  /// what stands between the quotes.
  bool take_quoted(std::string_view& content) {
    if (!take("\"")) return false;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        content = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

 private:
  std::string_view rest_;
};

/// Whether `text` is an address of IPv4 or IPv6, which may name a zone ("fe80::1%eth0").
bool is_address(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  const bool is_v6 = text.find(':') != std::string_view::npos;
  if (is_v6) text = text.substr(0, text.find('%'));
  if (text.empty() || text.size() >= copy.size()) return false;
  std::memcpy(copy.data(), text.data(), text.size());
  in6_addr address{};
  return inet_pton(is_v6 ? AF_INET6 : AF_INET, copy.data(), &address) == 1;
}

/// The name or the address of a host, and whether a port stands behind it.
struct Host {
  std::string_view name;
  bool is_address = false;
  bool has_port = false;
};

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && digits(text) > 0 && digits(text) <= 65'535;
}

/// "192.0.2.1", "192.0.2.1:80", "::1", "[::1]", "[::1]:80", "example.org", "example.org:80".
Host host_of(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = std::min(text.find(']'), text.size() - 1);
    const std::string_view inner = text.substr(1, end - 1);
    const std::string_view behind = text.substr(end + 1);
    const bool has_port = behind.starts_with(':') && is_port(behind.substr(1));
    if (is_address(inner) && (has_port || behind.empty())) return {inner, true, has_port};
  }
  if (is_address(text)) return {text, true, false};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !is_port(text.substr(colon + 1))) return {text};
  const std::string_view name = text.substr(0, colon);
  const bool is_v4 = is_address(name) && name.find(':') == std::string_view::npos;
  if (!is_v4 && (name.empty() || name.find(':') != std::string_view::npos)) return {text};
  return {name, is_v4, true};
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// How proxies name a client that they do not tell.
bool is_nobody(std::string_view text) { return text == "-" || text == "unknown" || text == "_"; }

constexpr const char* no_client = "the client is not told: a \"-\" or \"unknown\" stands there";

/// The client that X-Forwarded-For names: the first of a list of addresses. Each proxy puts the
/// address of whoever called it at the end.
const char* parse_forwarded(std::string_view list, std::string_view& client) {
  client = host_of(trimmed(list.substr(0, list.find(',')))).name;
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::string_view entry = trimmed(list.substr(0, comma));
    if (!is_nobody(entry) && !host_of(entry).is_address) {
      return "the list of forwarded addresses holds what is no address";
    }
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return is_nobody(client) ? no_client : nullptr;
}

const char* check_client(std::string_view client) {
  if (client.empty()) return "the client is empty";
  if (is_nobody(client)) return no_client;
  if (client.size() > longest_client) return "the client is longer than 255 bytes";
  if (!std::all_of(client.begin(), client.end(), is_graph)) {
    return "the client holds bytes that are not printable ASCII";
  }
  if (client.find_first_of("{}[]()<>|,;\"'") != std::string_view::npos) {
    return "the client holds what is in no name and in no address";
  }
  return nullptr;
}

/// Whether the first of two words is a virtual host before the client: it has a port, or an address
/// follows it.
bool is_virtual_host(std::string_view word, std::string_view next) {
  const Host host = host_of(word);
  if ((is_nobody(word) && word != "_") || word.find(',') != std::string_view::npos) return false;
  if (host.has_port && !host.is_address) return true;
  return (host.has_port || !host.is_address) && host_of(next.substr(0, next.find(','))).is_address;
}

/// Takes the client, which may be a list, and the space behind it.
const char* parse_client(Cursor& head, LogLine& line) {
  std::string_view list;
  if (head.rest().starts_with('"')) {
    if (!head.take_quoted(list) || !head.take(" ")) return "the quoted client does not end";
    line.forwarded = true;
    return parse_forwarded(list, line.client);
  }
  const std::string_view start = head.rest();
  std::string_view word = head.take_bare();
  while (word.ends_with(',') && head.take(" ")) word = head.take_bare();
  list = start.substr(0, start.size() - head.rest().size());
  head.take(" ");
  if (list.find(',') == std::string_view::npos) {
    const Host host = host_of(list);
    if (host.has_port && !host.is_address)
      return "a host with a port stands where the client belongs";
    line.client = host.name;
    return check_client(line.client);
  }
  line.forwarded = true;
  return parse_forwarded(list, line.client);
}

/// Ident and user, which may hold spaces if that cannot be anything else.
const char* check_ident_and_user(Cursor head, std::string_view client) {
  std::size_t words = 0;
  std::array<std::string_view, 2> first;
  for (; !head.at_end() || words < 2; ++words) {
    const std::string_view word = head.take_bare();
    if (word.empty()) return "ident and user do not stand before the stamp";
    if (host_of(word).is_address) {
      return "an address stands where ident and user belong: who the client is remains open";
    }
    if (words < first.size()) first[words] = word;
    if (!head.at_end()) head.take(" ");
  }
  if (!is_address(client) && first[0].find('.') != std::string_view::npos) {
    return "two names stand before the stamp: who the client is remains open";
  }
  const bool is_ident = first[0] == "-" || (is_address(client) && first[1] != "-");
  if (words > 2 && !is_ident) return "more than a client, ident and user stand before the stamp";
  return nullptr;
}

/// What stands before the stamp: "[virtual host] client ident user".
const char* parse_head(std::string_view text, LogLine& line) {
  if (text.starts_with(' ')) return "the line begins with a space";
  Cursor head(text);
  if (!text.starts_with('"')) {
    Cursor behind = head;
    const std::string_view word = behind.take_bare();
    behind.take(" ");
    Cursor after = behind;
    line.virtual_host = is_virtual_host(word, after.take_bare());
    if (line.virtual_host) head = behind;
  }
  if (const char* fault = parse_client(head, line)) return fault;
  return check_ident_and_user(head, line.client);
}

/// Where the stamp's bracket is: before a day, or else the first one.
std::size_t find_stamp(std::string_view text) {
  const auto is_day = [](std::string_view stamp) {
    return stamp.size() > 2 && digits(stamp.substr(0, 2)) >= 0 && stamp[2] == '/';
  };
  std::size_t at = text.find(" [");
  const std::size_t first = at;
  while (at != std::string_view::npos && !is_day(text.substr(at + 2))) at = text.find(" [", at + 1);
  return at == std::string_view::npos ? first : at;
}

/// What a quoted field behind the size may be.
enum class Field : std::uint8_t {
  other,
  forwarded,  ///< a list of addresses without ports; what has ports are addresses of servers
  mixed,      ///< a list of addresses and of what is none
};

Field field_of(std::string_view list) {
  bool all = true;
  bool any = false;
  bool mixed = false;
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::string_view entry = trimmed(list.substr(0, comma));
    any |= is_address(entry);
    all &= is_address(entry) || entry == "unknown";
    mixed |= !host_of(entry).is_address && !is_nobody(entry);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  if (all) return Field::forwarded;
  return any && mixed ? Field::mixed : Field::other;
}

/// What stands behind the size: bare and quoted fields, separated by one space each.
struct Tail {
  bool damaged = false;
  std::string_view list{};  // X-Forwarded-For
  const char* fault = nullptr;
};

/// The first two quoted fields of several are the referrer and the agent, which the client writes:
/// an address in them is no X-Forwarded-For.
Tail parse_tail(Cursor& cursor) {
  Tail tail;
  std::array<std::string_view, 2> first;
  std::size_t quoted = 0;
  while (!cursor.at_end() && !tail.damaged) {
    std::string_view content;
    if (!cursor.take(" ")) {
      tail.damaged = true;
    } else if (!cursor.rest().starts_with('"')) {
      tail.damaged = cursor.take_bare().empty() && !cursor.at_end();
    } else if (!cursor.take_quoted(content)) {
      tail.damaged = true;
    } else if (quoted++ < first.size()) {
      first[quoted - 1] = content;
    } else if (tail.list.empty() && field_of(content) != Field::other) {
      tail.list = content;
    }
  }
  if (quoted == 1 && !tail.damaged && field_of(first[0]) == Field::forwarded) tail.list = first[0];
  const auto begins_with_address = [](std::string_view field) {
    return is_address(trimmed(field.substr(0, field.find(','))));
  };
  if (quoted == 2 && std::any_of(first.begin(), first.end(), begins_with_address)) {
    tail.fault =
        "an address stands where the referrer or the agent belongs: who the client is "
        "remains open";
  }
  return tail;
}

}  // namespace

const char* parse_log_line(std::string_view text, LogLine& line) {
  line = {};
  if (text.starts_with('{')) return "the line is JSON: neither Common nor Combined Log Format";
  if (text.find(' ') == std::string_view::npos) return "there is no second field";
  const std::size_t at = find_stamp(text);
  if (at == std::string_view::npos) {
    return text.starts_with(' ') ? "the line begins with a space" : "there is no [stamp]";
  }
  if (const char* fault = parse_head(text.substr(0, at), line)) return fault;
  Cursor cursor(text.substr(at + 2));
  std::string_view stamp;
  if (!cursor.take_until("] ", stamp)) return "the stamp has no end";
  if (const char* fault = parse_stamp(stamp, line)) return fault;
  std::string_view request;
  if (!cursor.rest().starts_with('"')) return "the request is not quoted";
  if (!cursor.take_quoted(request)) return "the quoted request does not end";
  if (!cursor.take(" ")) return "nothing follows the request";
  const std::string_view status = cursor.take_bare();
  if (status.size() != 3 || digits(status) < 100) return "the status is not 100 to 999";
  if (!cursor.take(" ")) return "nothing follows the status";
  const std::string_view bytes = cursor.take_bare();
  if (bytes != "-" && (bytes.empty() || bytes.size() > 19 ||
                       bytes.find_first_not_of("0123456789") != std::string_view::npos)) {
    return "the size is neither a number nor \"-\"";
  }
  const Tail tail = parse_tail(cursor);
  line.damaged_tail = tail.damaged;
  if (tail.fault != nullptr || tail.list.empty()) return tail.fault;
  if (line.forwarded)
    return "there are two lists of forwarded addresses: who the client is remains open";
  line.forwarded = true;
  return parse_forwarded(tail.list, line.client);
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
    if (fault == nullptr && line.damaged_tail && !line.forwarded && log_.forwarded > 0) {
      fault = "the line is cut before X-Forwarded-For, which names the client of other lines";
    }
    if (fault != nullptr) return refuse(text, fault);
    if (log_.requests.size() == UINT32_MAX) throw std::length_error("more than 2^32 - 1 requests");
    note_offset(line.utc_offset);
    if (line.damaged_tail) ++log_.damaged_tails;
    if (line.forwarded) ++log_.forwarded;
    if (line.virtual_host) ++log_.virtual_hosts;
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
