// The proof that the twin test can fail: plants bugs in copies of the Lua files and of one kernel,
// and requires that each is caught. Prints a table of what caught it.
// Threading: compilers run beside the test, two at a time.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>

#include "tests/catch.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/twin/mutants.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/toy.hpp"
#include "tests/twin/twin.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

// Ten times what the mutants that hide best have needed; most are caught in hundreds.
constexpr std::size_t shortened = 8'000'000;
// Of these, how many come before the other checks, and between them.
constexpr std::size_t at_once = 6'000;
constexpr std::size_t at_a_time = 200'000;
// Of what is not changed: test_twin looks at that for longer.
constexpr std::size_t unchanged_run = 10'000;

struct Finding {
  std::string by;  // empty: nothing caught it
  std::string difference;
};

/// The shortened twin run in parts, with states that were spoilt between them: of what only those
/// show, the mutants that hide best need some 1,500, and one part has twice as many.
Finding examine(RedisClient& client, const LuaFiles& files, std::span<const Subject> subjects,
                Random& random, std::size_t decisions = shortened) {
  LuaFiles driven = files;
  drive_clock(driven);
  const Scripts scripts = join(driven, toy_operations());
  Twin twin(client, scripts, subjects, random);
  for (std::size_t made = 0; made < decisions;) {
    const bool first = made == 0;
    const std::size_t some = std::min(decisions - made, first ? at_once : at_a_time);
    made += some;
    if (const auto found = twin.run(some)) {
      return {"twin, decision " + std::to_string(twin.counts().to_difference), *found};
    }
    if (auto found = check_spoilt(client, scripts, subjects, 1'500, random)) {
      return {"spoilt states", *found};
    }
    if (auto found = check_records(client, scripts, subjects, 500, random)) {
      return {"spoilt records", *found};
    }
    if (auto found = check_full_tables(client, scripts, subjects, random)) {
      return {"full tables", *found};
    }
    if (!first) continue;
    if (auto found = check_server_time(client, join(files, toy_operations()), subjects, random)) {
      return {"server time", *found};
    }
  }
  return {};
}

void print_row(std::string_view where, std::string_view name, const Finding& finding) {
  std::printf("%-24s %-44s %s\n", std::string(where).c_str(), std::string(name).c_str(),
              finding.by.empty() ? "NOT CAUGHT" : finding.by.c_str());
}

LuaFiles with_toys() {
  LuaFiles files = read_lua_files();
  add_toys(files);
  return files;
}

/// What a mutant in this section is to be looked for in: the kind of its rule, or, in what all
/// rules share, one kind of each form, and one of more words than a driver reads at first.
std::vector<Subject> subjects_of(const LuaFiles& files, std::string_view section) {
  std::vector<Subject> shared(toy_subjects().begin(), toy_subjects().end());
  const std::string rule = section.empty() ? "" : rule_of_section(files, section);
  for (const Subject& subject : subjects()) {
    const std::string stem = script_name(*subject.rows[0]);
    if (rule_of_section(files, "operation " + stem) == rule) return {subject};
    const StateKind kind = subject.kind();
    if (kind == StateKind::token_bucket || kind == StateKind::leases) shared.push_back(subject);
  }
  return shared;
}

/// A copy of a kernel, compiled to a shared object of its own and loaded.
class CompiledKernel {
 public:
  CompiledKernel(const std::string& source, const fs::path& stem) : path_(stem.string() + ".so") {
    std::ofstream(stem.string() + ".cpp") << source;
    // -fwrapv: a planted overflow must give a wrong number, not a trap. -Bsymbolic: its own rows.
    const std::string command = std::string("\"") + SLUICE_CXX +
                                "\" -std=c++20 -O0 -fwrapv -fPIC -shared -Wl,-Bsymbolic -I\"" +
                                SLUICE_SOURCE_DIR + "/include\" -I\"" + SLUICE_SOURCE_DIR +
                                "\" -I\"" + SLUICE_SOURCE_DIR + "/src/rules\" -o \"" + path_ +
                                "\" \"" + stem.string() + ".cpp\" 2> \"" + stem.string() + ".log\"";
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(stem.string() + ".log");
      throw std::runtime_error("a copy of a kernel does not compile:\n" +
                               std::string(std::istreambuf_iterator<char>(log), {}));
    }
  }

  /// The kinds whose rows it has, with its rows. It stays loaded for the life of the process.
  [[nodiscard]] std::vector<Subject> kinds() const {
    void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    std::vector<Subject> kinds;
    for (Subject subject : subjects()) {
      bool any = false;
      for (const Operation*& row : subject.rows) {
        const std::string name = script_name(*row);
        const std::string symbol = "_ZN6sluice" + std::to_string(name.size()) + name + "E";
        if (void* address = ::dlsym(library, symbol.c_str())) {
          any = any || address != row;
          row = static_cast<const Operation*>(address);
        }
      }
      if (any) kinds.push_back(subject);
    }
    if (kinds.empty()) throw std::runtime_error(path_ + " has no row");
    return kinds;
  }

 private:
  std::string path_;
};

/// A folder that goes away with the test.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "sluice-mutants-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

TEST_CASE("every bug planted in a Lua twin is caught, and the unchanged twins are not",
          "[mutation][redis]") {
  if (redis_left_out()) return;
  Random random("every bug planted in a Lua twin is caught, and the unchanged twins are not");
  CAPTURE(random.repeat());
  RedisServer server;
  const LuaFiles files = with_toys();
  const auto examine_with = [&](const LuaFiles& some, std::string_view section) {
    // A connection of its own: replies that a difference left unread are dropped with it.
    RedisClient client(server.unix_socket());
    return examine(client, some, subjects_of(files, section), random,
                   section.empty() ? unchanged_run : shortened);
  };
  const Finding unchanged = examine_with(files, "");
  INFO(unchanged.difference);
  REQUIRE(unchanged.by.empty());
  for (const Mutant& mutant : read_mutants()) {
    if (!mutant.kernel().empty()) continue;
    INFO(mutant.file << ":" << mutant.line << ": " << mutant.section << ": " << mutant.name);
    Finding finding;
    try {
      finding = examine_with(plant(files, mutant), mutant.section);
    } catch (const std::runtime_error& error) {
      // The server hangs or has died of it; what follows needs one that lives.
      finding = {"no answer", error.what()};
      server.restart();
    }
    print_row(mutant.section, mutant.name, finding);
    CHECK_FALSE(finding.by.empty());
  }
}

TEST_CASE("every bug planted in a kernel is caught, and the unchanged copies are not",
          "[mutation][redis]") {
  if (redis_left_out()) return;
  Random random("every bug planted in a kernel is caught, and the unchanged copies are not");
  CAPTURE(random.repeat());
  RedisServer server;
  const Folder folder;
  const LuaFiles files = with_toys();
  std::vector<Mutant> mutants;  // of each kernel the unchanged copy first
  for (const Mutant& mutant : read_mutants()) {
    if (mutant.kernel().empty()) continue;
    if (mutants.empty() || mutants.back().section != mutant.section) {
      mutants.push_back({mutant.file, mutant.line, mutant.section, "(unchanged)", "", ""});
    }
    mutants.push_back(mutant);
  }
  REQUIRE_FALSE(mutants.empty());
  std::deque<std::future<CompiledKernel>> compiling;
  std::size_t started = 0;
  const auto start = [&] {
    const Mutant& mutant = mutants[started];
    const fs::path stem = folder.path / std::to_string(started++);
    compiling.push_back(std::async(std::launch::async, [&mutant, stem] {
      const bool is_changed = !mutant.from.empty();
      return CompiledKernel(is_changed ? plant_in_kernel(mutant) : kernel_source(mutant.kernel()),
                            stem);
    }));
  };
  for (const Mutant& mutant : mutants) {
    while (started < mutants.size() && compiling.size() < 2) start();
    INFO(mutant.file << ":" << mutant.line << ": " << mutant.name);
    const CompiledKernel kernel = compiling.front().get();
    compiling.pop_front();
    RedisClient client(server.unix_socket());
    const Finding finding = examine(client, files, kernel.kinds(), random,
                                    mutant.from.empty() ? unchanged_run : shortened);
    INFO(finding.difference);
    if (!mutant.from.empty()) {
      print_row(fs::path(mutant.kernel()).filename().string(), mutant.name, finding);
    }
    CHECK(finding.by.empty() == mutant.from.empty());
  }
}
