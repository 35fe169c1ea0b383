// The program sluice: what an operator asks of the limits on a Redis server. Threading: one thread,
// beside those of a RedisStore.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "cli/command_line.hpp"
#include "sluice/redis/redis_url.hpp"
#include "src/util/parse_span.hpp"
#include "tool/commands.hpp"
#include "tool/table.hpp"

namespace {

using namespace sluice;
using namespace sluice::tool;

using Command = std::function<int()>;

struct Options {
  std::string url;
  std::string prefix;
  std::string key;
  std::string quota;
  std::vector<Word> limits;
  std::string table;
  std::string span;
  Word cost = 1;
  std::size_t number = 0;
  std::string file;
  bool json = false;
  bool functions = false;
  bool yes = false;
};
/// Of a limit, a burst and a request.
constexpr std::uint64_t most_units = std::uint64_t{1} << 51;
/// Each line of watch is a question to the server.
constexpr Span shortest_interval = std::chrono::milliseconds{100};

using Shared = std::shared_ptr<Options>;

/// The URL with its login left out.
std::string without_login(const std::string& url) {
  const std::size_t begin = url.find("://");
  const std::size_t end = url.rfind('@');
  const std::size_t parameters = url.find('?');
  std::string shown = url.substr(0, parameters);
  if (begin == std::string::npos || end == std::string::npos || end > shown.size()) return shown;
  return shown.erase(begin + 3, end - begin - 2);
}

Session session_of(const Options& options) {
  Session session;
  session.redis = parse_redis_url(options.url);
  session.redis.client_name = "sluice-tool";
  session.redis.connect_timeout = std::chrono::seconds{5};
  session.redis.call_timeout = longest_answer;
  if (options.functions) session.redis.scripts = RedisScripts::functions;
  session.url = without_login(options.url);
  session.style = make_style(options.json);
  if (!options.quota.empty()) session.given.quota = Quota::parse(options.quota);
  session.given.limits = options.limits;
  session.given.cost = options.cost;
  if (!options.table.empty()) session.given.fill = read_table(options.table);
  return session;
}

ScanOptions scan_of(const Options& options, const Session& session) {
  return {options.prefix, options.key, session.given};
}

/// A command with the options that all have.
CLI::App* add(CLI::App& app, const char* name, const char* what, const Shared& options) {
  CLI::App* const command = app.add_subcommand(name, what);
  command
      ->add_option("--redis", options->url,
                   "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://;\n"
                   "else the variable SLUICE_REDIS, which other users of the machine cannot see")
      ->envname("SLUICE_REDIS")
      ->required();
  command->add_flag("--json", options->json, "Print JSON, one object a line");
  command->add_flag("--functions", options->functions,
                    "The user may not use EVAL: call the library of functions");
  return command;
}

void add_key(CLI::App* command, const Shared& options) {
  command->add_option("KEY", options->key, "As sluice keys prints it: {alice}:api:10/s")
      ->required();
}

void add_given(CLI::App* command, const Shared& options) {
  CLI::Option* const quota =
      command->add_option("--quota", options->quota,
                          "The limiter's quota, such as 10/s:5, where the state does not have it");
  CLI::Option* const limit = command
                                 ->add_option("--limit", options->limits,
                                              "The limit or burst; of several windows one each")
                                 ->delimiter(',')
                                 ->transform(whole_number(1, most_units));
  if (!has_tables()) return;
  command
      ->add_option("--table", options->table,
                   "FILE:NAME, a list of limits by key in a TOML file, in place of both")
      ->excludes(quota)
      ->excludes(limit);
}

void add_scan(CLI::App* command, const Shared& options) {
  command->add_option("PATTERN", options->key, "Only keys that match this glob");
  command->add_option("--prefix", options->prefix, "Only keys with this key_prefix");
}

int complain(const Options& options, const std::exception& error, int code) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n",
             wrapped(make_style(options.json), fmt::format("sluice: {}", error.what()), 2));
  return code;
}

/// What a command does with its session.
void run_as(CLI::App* command, Command& chosen, const Shared& options,
            std::function<int(const Session&)> body) {
  command->callback([&chosen, options, body = std::move(body)] {
    chosen = [options, body] {
      try {
        return body(session_of(*options));
      } catch (const Unreachable& error) {
        return complain(*options, error, unreachable);
      } catch (const std::exception& error) {
        return complain(*options, error, bad_input);
      }
    };
  });
}

void add_reading(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add(app, "keys", "All keys with a state of a limiter", options);
  add_scan(command, options);
  run_as(command, chosen, options,
         [=](const Session& s) { return list_keys(s, scan_of(*options, s)); });

  options = std::make_shared<Options>();
  command = add(app, "show", "What the state of a key says, and who waits for it", options);
  add_key(command, options);
  add_given(command, options);
  run_as(command, chosen, options, [=](const Session& s) { return show_key(s, options->key); });

  options = std::make_shared<Options>();
  command = add(app, "peek", "Whether a request would be granted; 1 if not", options);
  add_key(command, options);
  add_given(command, options);
  command->add_option("--cost", options->cost, "Units of the request")
      ->transform(whole_number(1, most_units));
  run_as(command, chosen, options, [=](const Session& s) { return peek_key(s, options->key); });

  options = std::make_shared<Options>();
  command = add(app, "top", "The keys that are used most", options);
  add_scan(command, options);
  add_given(command, options);
  command->add_option("--most", options->number, "How many")
      ->default_val(10)
      ->transform(whole_number(1, 1'000));
  run_as(command, chosen, options, [=](const Session& s) {
    return top_keys(s, {scan_of(*options, s), options->number});
  });

  options = std::make_shared<Options>();
  command = add(app, "watch", "A key again and again, until Ctrl-C", options);
  add_key(command, options);
  add_given(command, options);
  command->add_option("--interval", options->span, "Such as 500ms; 100ms or more")
      ->default_val("1s");
  command->add_option("--times", options->number, "How often (default: until Ctrl-C)");
  run_as(command, chosen, options, [=](const Session& s) {
    const Span interval = detail::parse_span(options->span);
    if (interval < shortest_interval) {
      throw std::invalid_argument("--interval must be 100ms or more, got " + options->span);
    }
    return watch_key(s, options->key, {interval, options->number});
  });
}

void add_doctor(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = add(
      app, "doctor", "Looks at the server, and says what to do; 1 if there is something", options);
  command->add_option("--prefix", options->prefix,
                      "The key_prefix of the store whose rights count");
  run_as(command, chosen, options, [=](const Session& s) { return examine(s, options->prefix); });
}

void add_moves(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add(app, "export", "Write the states of all keys to a file", options);
  command->add_option("FILE", options->file, "It is replaced; -: standard output")
      ->required()
      ->transform([](const std::string& file) { return file == "-" ? "/dev/stdout" : file; });
  add_scan(command, options);
  run_as(command, chosen, options, [=](const Session& s) {
    ScanOptions scan = scan_of(*options, s);
    scan.expiry = true;
    return export_states(s, scan, options->file);
  });

  options = std::make_shared<Options>();
  command = add(app, "import", "Restore the states of a file under keys that are absent", options);
  command
      ->add_option("FILE", options->file, "As export or save_states() wrote it; -: standard input")
      ->required()
      ->transform([](const std::string& file) { return file == "-" ? "/dev/stdin" : file; });
  command->add_option("--prefix", options->prefix, "The key_prefix to restore them under");
  command->add_flag("--yes", options->yes, "Do it without asking");
  run_as(command, chosen, options, [=](const Session& s) {
    return import_states(s, options->prefix, options->file, options->yes);
  });
}

void add_changes(CLI::App& app, Command& chosen) {
  struct Change {
    const char* name;
    const char* what;
    bool has_span;
    int (*run)(const Session&, const Options&);
  };
  static constexpr Change changes[]{
      {"reset", "Delete the state of a key: its limit starts anew", false,
       [](const Session& s, const Options& o) { return reset_key(s, o.key, o.yes); }},
      {"block", "Refuse everything under a key for some time", true,
       [](const Session& s, const Options& o) {
         return block_key(s, o.key, detail::parse_span(o.span), o.yes);
       }},
      {"close", "Close a gate for some time", true,
       [](const Session& s, const Options& o) {
         return close_gate(s, o.key, detail::parse_span(o.span), o.yes);
       }},
      {"open", "Open a gate at once", false,
       [](const Session& s, const Options& o) { return open_gate(s, o.key, o.yes); }},
  };
  for (const Change& each : changes) {
    const auto options = std::make_shared<Options>();
    CLI::App* const command = add(app, each.name, each.what, options);
    add_key(command, options);
    add_given(command, options);
    command->add_flag("--yes", options->yes, "Do it without asking");
    if (each.has_span) {
      command->add_option("--for", options->span, "How long, such as 30s, 10min, 1h")->required();
    }
    run_as(command, chosen, options,
           [=, run = each.run](const Session& s) { return run(s, *options); });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Sluice's tool for operators: the limits on a Redis server"};
  app.name("sluice");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return wrapped(make_style(false), CLI::FailureMessage::simple(failed, error), 0);
  });
  app.footer(
      "Only reset, block, open, close and import change anything; they say what, and ask.\n"
      "Exit codes: 0; 1 if peek's request would be refused, or doctor found something;\n"
      "2 for bad input, or a right that the user lacks; 3 if the server cannot be reached;\n"
      "130 after Ctrl-C.");
  Command chosen;
  add_reading(app, chosen);
  add_changes(app, chosen);
  add_moves(app, chosen);
  add_doctor(app, chosen);
  return parse_and_run(app, argc, argv, [&] { return chosen(); });
} catch (...) {
  std::fputs("sluice: no memory for the command line\n", stderr);
  return 2;
}
