// sluice show, peek and watch: one key, once or again and again.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command_line.hpp"
#include "cli/text.hpp"
#include "tool/commands.hpp"

namespace sluice::tool {
namespace {

/// Rows in text; JSON has all.
constexpr std::size_t most_rows = 20;
constexpr int interrupted = 130;
/// How soon Ctrl-C ends a pause.
constexpr Span tick = std::chrono::milliseconds{50};

std::atomic<bool> stopped{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");
void on_interrupt(int) { stopped.store(true); }

/// Those who wait for the key, in other processes.
std::optional<Found> line_of(const Fleet& fleet, const Found& found) {
  const std::string line = wait_line_of(found.name);
  auto waiting = line.empty() || found.state.kind == StateKind::wait_line ? std::nullopt
                                                                          : find_line(fleet, line);
  const bool counts = waiting && waiting->description.is_sound &&
                      waiting->state.kind == StateKind::wait_line &&
                      !waiting->description.rows.empty();
  return counts ? std::move(waiting) : std::nullopt;
}

void print_rows(const Session& session, const Found& found) {
  const Description& d = found.description;
  for (std::size_t i = 0; i < d.rows.size() && i < most_rows; ++i) {
    print_field(session.style, i == 0 ? d.rows_name : "", text_of(d.rows[i], found.at));
  }
  if (d.rows.size() > most_rows) {
    print_field(session.style, "", fmt::format("and {} more", d.rows.size() - most_rows));
  }
}

nlohmann::ordered_json json_of(const Found& found, const std::optional<Found>& line) {
  nlohmann::ordered_json result = to_json(found);
  if (line) result["line"] = to_json(*line);
  return result;
}

std::string verdict_text(const Verdict& verdict) {
  if (verdict.status < 0) {
    return make_error_code(static_cast<Errc>(-verdict.status)).message();
  }
  if (verdict.status != Verdict::refused) return "granted now";
  if (verdict.retry_after == Decision::never.count()) return "refused, always";
  return "refused; granted in " + duration(Span{verdict.retry_after}) + " if nobody asks before";
}

}  // namespace

void print_found(const Session& session, const Found& found) {
  const Description& d = found.description;
  fmt::print("{}\n", wrapped(session.style, shown(found.name.text), 0));
  print_field(session.style, "kind", d.kind + (d.summary.empty() ? "" : ", " + d.summary));
  for (const Field& each : d.fields) {
    print_field(session.style, each.name, text_of(each.value, found.at));
  }
  if (d.is_sound && !d.verdict && d.used) {
    print_field(session.style, "limit", "not in the state: give --quota or --limit");
  }
  if (found.expires) print_field(session.style, "expires", "in " + duration(*found.expires));
  print_rows(session, found);
}

int show_key(const Session& session, const std::string& key) {
  const Fleet fleet(session.redis);
  const Found found = read_key(fleet, key, session.given);
  const std::optional<Found> line = line_of(fleet, found);
  if (session.style.json) {
    print_json(json_of(found, line));
    return fine;
  }
  print_found(session, found);
  if (line) {
    print_field(session.style, "line", line->description.summary);
    print_rows(session, *line);
  }
  return fine;
}

int peek_key(const Session& session, const std::string& key) {
  const Fleet fleet(session.redis);
  const Found found = read_key(fleet, key, session.given);
  const auto& verdict = found.description.verdict;
  if (!verdict) {
    throw std::invalid_argument(found.description.kind +
                                " does not contain its limit: give --quota or --limit");
  }
  const bool is_granted = verdict->status == Verdict::allowed;
  if (session.style.json) {
    nlohmann::ordered_json result{{"key", key}, {"cost", session.given.cost}};
    result["granted"] = is_granted;
    if (verdict->status < 0) {
      result["error"] = verdict_text(*verdict);
    } else {
      result["remaining"] = verdict->remaining;
      result["retry_after_us"] = verdict->retry_after;
      result["reset_after_us"] = verdict->reset_after;
    }
    print_json(result);
  } else {
    print_line(session.style, key,
               fmt::format("{} of {}: {}", found.description.kind, session.given.cost,
                           verdict_text(*verdict)));
  }
  return is_granted ? fine : objected;
}

int watch_key(const Session& session, const std::string& key, const WatchOptions& options) {
  const Fleet fleet(session.redis);
  std::signal(SIGINT, on_interrupt);
  SystemClock clock;
  for (std::size_t i = 0; !stopped; ++i) {
    if (const std::optional<Found> found = find_key(fleet, key, session.given)) {
      if (session.style.json) {
        print_json(to_json(*found));
      } else {
        print_line(session.style, moment(found->at / 1'000'000, 0, true),
                   found->description.kind + ", " + found->description.summary);
      }
    } else if (session.style.json) {
      print_json({{"key", key}, {"kind", nullptr}});
    } else {
      print_line(session.style, moment(fleet.of(key).now() / 1'000'000, 0, true), "no such key");
    }
    flush_output();
    if (i + 1 == options.times) return fine;
    for (const Time end = clock.now() + options.interval; !stopped && clock.now() < end;) {
      std::this_thread::sleep_for(std::min(tick, end - clock.now()));
    }
  }
  return interrupted;
}

}  // namespace sluice::tool
