// The report of a log: read, replay under each quota, print.
#include "sim/log/log_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>
#include <system_error>

#include "cli/text.hpp"
#include "sim/log/log_coverage.hpp"
#include "sim/log/replay.hpp"

namespace sluice::tool {
namespace {

constexpr std::size_t quotas_abreast = 4;  // fits in 100 columns
constexpr std::size_t widest_client = 39;  // a full IPv6 address

struct Run {
  NamedQuota quota;
  ReplayResult result;
};

std::string zone_of(std::int64_t offset) {
  return fmt::format("{}{:02}{:02}", offset < 0 ? '-' : '+', std::abs(offset) / 3600,
                     std::abs(offset) / 60 % 60);
}

std::string name_of(const std::string& file) {
  return file == "-" ? "standard input" : printable(file, 60);
}

/// Lines of it, each behind the end of the one before.
std::string unreadable_text(const AccessLog& log) {
  const char* heading =
      log.unreadable > log.first_unreadable.size() ? "first unreadable" : "unreadable";
  std::string text;
  for (const UnreadableLine& line : log.first_unreadable) {
    text += fmt::format("\n  {:<16}  line {}: {}\n                    {}", heading,
                        thousands(line.number), line.reason, line.excerpt);
    heading = "";
  }
  return text;
}

void print_summary(const LogOptions& options, const AccessLog& log) {
  const auto [start, requests] = busiest_minute(log);
  const std::int64_t offset = log.utc_offset;
  fmt::print("{}: {} of {}\n\n", name_of(options.file), plural(log.requests.size(), "request"),
             plural(log.clients.size(), "client"));
  fmt::print("  time              {} to {} ({})\n",
             moment(log.requests.front().second, offset, true),
             moment(log.requests.back().second, offset, true), zone_of(offset));
  fmt::print("  lines             {} read, {} unreadable{}\n", thousands(log.lines),
             thousands(log.unreadable), unreadable_text(log));
  if (log.damaged_tails > 0) {
    fmt::print("  damaged tail      {}, counted: only what follows the size is broken\n",
               plural(log.damaged_tails, "request"));
  }
  if (log.virtual_hosts > 0) {
    fmt::print(
        "  virtual host      {}: a server stands before the client, who is the second field\n",
        plural(log.virtual_hosts, "request"));
  }
  if (log.forwarded > 0) {
    fmt::print("  forwarded         {}: the client is the first address of X-Forwarded-For\n",
               plural(log.forwarded, "request"));
  }
  fmt::print("  out of order      {}, put in the order of their stamps\n",
             plural(log.out_of_order, "request"));
  fmt::print("  busiest minute    {}, {}\n\n", moment(start, offset, false),
             plural(requests, "request"));
}

/// What the log may not tell, so that nobody takes the figures for those of live traffic.
void print_coverage(const AccessLog& log) {
  const std::string text = coverage_text(log);
  if (!text.empty()) fmt::print("WARNING: {}\n", text);
}

void print_quotas(const std::vector<Run>& runs, const AccessLog& log) {
  Table table({"quota per client", "burst", "admitted", "", "refused", "", "clients refused", ""});
  for (const Run& run : runs) {
    const ReplayResult& r = run.result;
    table.add({run.quota.name, thousands(static_cast<std::uint64_t>(run.quota.quota.capacity())),
               thousands(r.admitted), percent(r.admitted, log.requests.size()),
               thousands(r.refused), percent(r.refused, log.requests.size()),
               thousands(r.clients_refused), percent(r.clients_refused, log.clients.size())});
  }
  fmt::print("{}", table.text());
}

/// The clients with the most refusals over all quotas, then with the most requests.
std::vector<std::uint32_t> hardest_hit(const std::vector<Run>& runs,
                                       const std::vector<std::uint64_t>& requests,
                                       std::size_t most) {
  std::vector<std::uint64_t> refused(requests.size());
  for (const Run& run : runs) {
    for (std::size_t i = 0; i < refused.size(); ++i) refused[i] += run.result.refused_of[i];
  }
  std::vector<std::uint32_t> clients(requests.size());
  std::iota(clients.begin(), clients.end(), std::uint32_t{0});
  std::erase_if(clients, [&](std::uint32_t c) { return refused[c] == 0; });
  std::stable_sort(clients.begin(), clients.end(), [&](std::uint32_t a, std::uint32_t b) {
    return refused[a] != refused[b] ? refused[a] > refused[b] : requests[a] > requests[b];
  });
  clients.resize(std::min(clients.size(), most));
  return clients;
}

std::string label(const NamedQuota& quota) {
  return fmt::format("{}:{}", quota.name, quota.quota.capacity());
}

void print_hardest_hit(const LogOptions& options, const std::vector<Run>& runs,
                       const AccessLog& log) {
  if (options.top == 0) return;
  const auto requests = requests_of(log);
  const auto clients = hardest_hit(runs, requests, options.top);
  if (clients.empty()) {
    fmt::print("\nNo client was refused anything.\n");
    return;
  }
  fmt::print("\nHit hardest: refused requests of a client{}\n",
             runs.size() == 1 ? "" : ", by quota and burst");
  for (std::size_t from = 0; from < runs.size(); from += quotas_abreast) {
    const std::size_t to = std::min(runs.size(), from + quotas_abreast);
    std::vector<std::string> header{"client", "requests"};
    for (std::size_t i = from; i < to; ++i) {
      header.push_back(runs.size() == 1 ? "refused" : label(runs[i].quota));
      header.emplace_back();
    }
    Table table(std::move(header));
    for (const std::uint32_t client : clients) {
      std::vector<std::string> row{printable(log.clients[client], widest_client),
                                   thousands(requests[client])};
      for (std::size_t i = from; i < to; ++i) {
        const std::uint64_t refused = runs[i].result.refused_of[client];
        row.push_back(thousands(refused));
        row.push_back(percent(refused, requests[client]));
      }
      table.add(std::move(row));
    }
    fmt::print("{}{}", from == 0 ? "" : "\n", table.text());
  }
}

AccessLog read(const std::string& name) {
  const std::unique_ptr<std::FILE, FileCloser> file(name == "-" ? stdin
                                                                : std::fopen(name.c_str(), "rb"));
  if (!file) throw std::system_error(errno, std::generic_category(), "cannot be opened");
  Progress progress;
  AccessLog log = read_access_log(file.get(), [&](std::uint64_t lines) {
    if (progress.due()) progress.show(fmt::format("read {}", plural(lines, "line")));
  });
  if (log.lines == 0) throw std::runtime_error("there is nothing in it");
  if (log.requests.empty()) {
    throw std::runtime_error(fmt::format("no line of {} is in the Common or Combined Log Format{}",
                                         thousands(log.lines), unreadable_text(log)));
  }
  return log;
}

/// Takes the lists apart. Throws std::invalid_argument if one has an empty element.
std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> elements;
  for (const std::string& list : lists) {
    for (std::size_t from = 0; from <= list.size();) {
      const std::size_t to = std::min(list.find(',', from), list.size());
      if (to == from) {
        throw std::invalid_argument(
            fmt::format("--quota {}: {}", printable(list, 60),
                        list.empty() ? "it is empty"
                                     : "there is no quota before, between or after the commas"));
      }
      elements.push_back(list.substr(from, to - from));
      from = to + 1;
    }
  }
  return elements;
}

std::vector<NamedQuota> parse_quotas(const LogOptions& options) {
  std::vector<NamedQuota> quotas;
  const std::vector<std::string> texts = split(options.quotas);
  if (texts.size() > most_quotas) {
    throw std::invalid_argument(
        fmt::format("at most {} quotas can be compared, got {}", most_quotas, texts.size()));
  }
  if (options.burst > 0 && std::ranges::all_of(texts, [](const std::string& text) {
        return text.find(':') != std::string::npos;
      })) {
    throw std::invalid_argument(fmt::format(
        "--burst {}: every --quota names a burst of its own after the colon", options.burst));
  }
  for (const std::string& text : texts) {
    try {
      quotas.push_back(parse_named_quota(text, options.burst));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(
          fmt::format("--quota {}: {}", printable(text, 60), printable(error.what(), 300)));
    }
  }
  return quotas;
}

void report(const LogOptions& options, const std::vector<NamedQuota>& quotas) {
  const AccessLog log = read(options.file);
  std::vector<Run> runs;
  runs.reserve(quotas.size());
  Progress progress;
  for (const NamedQuota& quota : quotas) {
    runs.push_back({quota, replay(log, quota.quota, [&](std::uint64_t done) {
                      if (!progress.due()) return;
                      progress.show(fmt::format("{}: replayed {} of {}", quota.name,
                                                percent(done, log.requests.size()),
                                                plural(log.requests.size(), "request")));
                    })});
  }
  print_summary(options, log);
  print_coverage(log);
  print_quotas(runs, log);
  print_hardest_hit(options, runs, log);
}

}  // namespace

std::vector<std::string> default_quotas(bool with_burst) {
  if (!with_burst) return {"10/min", "30/min", "60/min", "120/min"};
  return {"10/min:10", "30/min:10", "60/min:20", "120/min:30"};
}

void run_log(const LogOptions& options) {
  const std::vector<NamedQuota> quotas = parse_quotas(options);
  try {
    report(options, quotas);
  } catch (const std::exception& error) {
    throw std::runtime_error(name_of(options.file) + ": " + error.what());
  }
}

}  // namespace sluice::tool
