// See output.hpp.
#include "tool/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"

namespace sluice::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t name_columns = 14;
/// Below this, the output is as for a terminal of this width.
constexpr std::size_t least_width = 20;
/// Instants further away are dates.
constexpr Span near_time = std::chrono::minutes{10};

std::size_t width_of_terminal() noexcept {
  if (const char* const columns = std::getenv("COLUMNS")) {
    std::size_t width = 0;
    const std::string_view text = columns;
    std::from_chars(text.data(), text.data() + text.size(), width);
    if (width > 0) return std::max(width, least_width);
  }
  winsize size{};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::max<std::size_t>(size.ws_col, least_width) : 0;
}

std::string relative(Word us) {
  return us >= 0 ? "in " + duration(Span{us}) : duration(Span{-us}) + " ago";
}

std::string words_of(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

struct TextOf {
  Word now;
  std::string operator()(Word number) const {
    return number < 0 ? std::to_string(number) : thousands(static_cast<std::uint64_t>(number));
  }
  std::string operator()(double number) const { return fmt::format("{:.6g}", number); }
  std::string operator()(Span span) const { return duration(span); }
  std::string operator()(Moment at) const {
    const Word away = at.us - now;
    if (Span{std::abs(away)} < near_time) return relative(away);
    return moment(at.us / 1'000'000, 0, true) + " UTC";
  }
  std::string operator()(const std::string& text) const { return text; }
};

struct AddTo {
  Json& to;
  const std::string& name;
  void operator()(Word number) const { to[name] = number; }
  void operator()(double number) const { to[name] = number; }
  void operator()(Span span) const { to[name + "_us"] = span.count(); }
  void operator()(Moment at) const { to[name + "_us"] = at.us; }
  void operator()(const std::string& text) const { to[name] = text; }
};

/// "token_bucket" of "a token bucket".
std::string slug(std::string_view kind) {
  for (const std::string_view article : {"a ", "the "}) {
    if (kind.starts_with(article)) kind.remove_prefix(article.size());
  }
  std::string text(kind);
  std::ranges::replace(text, ' ', '_');
  return text;
}

Json counts(const std::map<std::string, Totals::Count>& all, bool are_kinds) {
  Json result = Json::object();
  for (const auto& [what, count] : all) {
    result[are_kinds ? slug(what) : what] = {{"keys", count.keys},
                                             {"example", printable(count.example, 200)}};
  }
  return result;
}

}  // namespace

Style make_style(bool json) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const no_colour = std::getenv("NO_COLOR");
  const bool may_colour = no_colour == nullptr || *no_colour == '\0';
  return {width_of_terminal(), is_terminal && may_colour && !json, json};
}

std::string painted(const Style& style, Colour colour, std::string_view text) {
  if (!style.colour || colour == Colour::plain) return std::string(text);
  const char* const code = colour == Colour::bold     ? "1"
                           : colour == Colour::red    ? "31"
                           : colour == Colour::yellow ? "33"
                                                      : "32";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string wrapped(const Style& style, std::string_view text, std::size_t indent) {
  const std::size_t kept = style.width == 0 ? indent : std::min(indent, style.width / 2);
  const std::size_t room = style.width == 0 ? text.size() : style.width - kept;
  std::string lines;
  for (;;) {
    std::size_t end = std::min(text.find('\n'), text.size());
    bool is_skipped = end < text.size();
    if (end > room) {
      end = text.rfind(' ', room);
      is_skipped = end != std::string_view::npos && end > 0;
      if (!is_skipped) end = room;
    } else if (!is_skipped) {
      return lines.append(text);
    }
    lines.append(text.substr(0, end)).append("\n").append(kept, ' ');
    text.remove_prefix(end + (is_skipped ? 1 : 0));
  }
}

std::string shown(std::string_view text) {
  return printable(text, std::numeric_limits<std::size_t>::max());
}

std::string behind(const Style& style, std::string_view head, std::string_view text,
                   std::size_t indent) {
  const bool is_one_line = style.width == 0 || head.size() + text.size() <= style.width;
  const std::size_t kept = std::min(indent, style.width / 2);
  std::string lines(head);
  if (!is_one_line && head.size() > kept) {
    lines.resize(lines.find_last_not_of(' ') + 1);
    lines.append("\n").append(kept, ' ');
  }
  return lines.append(is_one_line ? text : wrapped(style, text, indent));
}

void print_line(const Style& style, std::string_view raw_key, std::string_view text) {
  const std::string key = shown(raw_key);
  if (style.width == 0 || key.size() + 2 + text.size() <= style.width) {
    fmt::print("{}  {}\n", painted(style, Colour::bold, key), text);
    return;
  }
  fmt::print("{}\n  {}\n", painted(style, Colour::bold, wrapped(style, key, 0)),
             wrapped(style, text, 2));
}

void print_field(const Style& style, std::string_view name, std::string_view text) {
  const std::string head = fmt::format("  {:<{}} ", words_of(name), name_columns);
  fmt::print("{}\n", behind(style, head, shown(text), name_columns + 3));
}

std::string text_of(const Value& value, Word now) { return std::visit(TextOf{now}, value); }

std::string text_of(const Fields& fields, Word now) {
  std::string text;
  for (const Field& each : fields) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(each.name),
                        text_of(each.value, now));
  }
  return text;
}

Json to_json(const Fields& fields) {
  Json result = Json::object();
  for (const Field& each : fields) std::visit(AddTo{result, each.name}, each.value);
  return result;
}

Json to_json(const Found& found) {
  const Description& d = found.description;
  Json result{{"key", found.name.text}, {"kind", slug(d.kind)}, {"sound", d.is_sound}};
  result["summary"] = d.summary;
  result.update(to_json(d.fields));
  if (!d.rows.empty()) {
    for (const Fields& row : d.rows)
      result[d.rows_name == "holders" ? "leases" : d.rows_name].push_back(to_json(row));
  }
  if (found.expires) result["expires_us"] = found.expires->count();
  result["at_us"] = found.at;
  return result;
}

Json to_json(const Totals& totals) {
  return {{"keys", totals.all_ours()},
          {"kinds", counts(totals.ours, true)},
          {"foreign", totals.all_foreign()},
          {"foreign_kinds", counts(totals.foreign, false)}};
}

void print_json(const Json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace sluice::tool
