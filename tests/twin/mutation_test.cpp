// The proof that the twin test can fail: plants bugs in copies of the Lua fragments and of the
// kernel, and requires that each is caught. Prints a table of what caught it.
// Threading: compilers run beside the test, two at a time.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "sluice/algorithms/token_bucket.hpp"
#include "tests/catch.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/twin/mutants.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/twin.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

// Ten times what the mutant that hides best has needed.
constexpr std::size_t shortened = 40'000;

struct Finding {
  std::string by;  // empty: nothing caught it
  std::string difference;
};

/// The shortened twin run, then the server's time.
Finding examine(RedisClient& client, const Fragments& fragments, Twin::Rows rows, Random& random) {
  Fragments driven = fragments;
  driven.at("clock.lua") = driven_clock;
  Twin twin(client, join(driven), rows, random);
  if (auto found = twin.run(shortened)) {
    return {"twin, decision " + std::to_string(twin.counts().to_difference), *found};
  }
  if (auto found = Twin::check_server_time(client, join(fragments), rows, random)) {
    return {"server time", *found};
  }
  return {};
}

void print_row(std::string_view where, std::string_view name, const Finding& finding) {
  std::printf("%-17s %-42s %s\n", std::string(where).c_str(), std::string(name).c_str(),
              finding.by.empty() ? "NOT CAUGHT" : finding.by.c_str());
}

/// A copy of the kernel, compiled to a shared object of its own and loaded.
class CompiledKernel {
 public:
  CompiledKernel(const std::string& source, const fs::path& stem) : path_(stem.string() + ".so") {
    std::ofstream(stem.string() + ".cpp") << source;
    // -fwrapv: a planted overflow must give a wrong number, not a trap. -Bsymbolic: its own rows.
    const std::string command = std::string("\"") + SLUICE_CXX +
                                "\" -std=c++20 -O0 -fwrapv -fPIC -shared -Wl,-Bsymbolic -I\"" +
                                SLUICE_SOURCE_DIR + "/include\" -o \"" + path_ + "\" \"" +
                                stem.string() + ".cpp\" 2> \"" + stem.string() + ".log\"";
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(stem.string() + ".log");
      throw std::runtime_error("a copy of the kernel does not compile:\n" +
                               std::string(std::istreambuf_iterator<char>(log), {}));
    }
  }

  /// Its rows, in the order of the table. They stay loaded for the life of the process.
  [[nodiscard]] std::vector<const Operation*> rows() const {
    void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    std::vector<const Operation*> rows;
    for (const char* symbol :
         {"_ZN6sluice17token_bucket_takeE", "_ZN6sluice17token_bucket_peekE"}) {
      void* address = ::dlsym(library, symbol);
      if (address == nullptr) throw std::runtime_error(::dlerror());
      rows.push_back(static_cast<const Operation*>(address));
    }
    return rows;
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

TEST_CASE("every bug planted in the Lua twin is caught, and the unchanged twin is not",
          "[mutation][redis]") {
  if (redis_left_out()) return;
  Random random("every bug planted in the Lua twin is caught, and the unchanged twin is not");
  CAPTURE(random.repeat());
  RedisServer server;
  RedisClient client(server.unix_socket());
  const Fragments fragments = read_fragments();
  const Finding unchanged = examine(client, fragments, operations(), random);
  INFO(unchanged.difference);
  REQUIRE(unchanged.by.empty());
  for (const Mutant& mutant : script_mutants()) {
    Fragments mutated = fragments;
    std::string& text = mutated.find(mutant.file)->second;
    text = replace_once(text, mutant.from, mutant.to);
    // A connection of its own: replies that a difference left unread are dropped with it.
    RedisClient own(server.unix_socket());
    const Finding finding = examine(own, mutated, operations(), random);
    print_row(mutant.file, mutant.name, finding);
    INFO(mutant.file << ": " << mutant.name);
    CHECK_FALSE(finding.by.empty());
  }
  CHECK(script_mutants().size() >= 8);
}

TEST_CASE("every bug planted in the kernel is caught, and the unchanged copy is not",
          "[mutation][redis]") {
  if (redis_left_out()) return;
  Random random("every bug planted in the kernel is caught, and the unchanged copy is not");
  CAPTURE(random.repeat());
  RedisServer server;
  const Folder folder;
  const std::string source = read_source(std::string(kernel_source));
  const Fragments fragments = read_fragments();
  const auto mutants = kernel_mutants();
  const auto compile = [&](std::size_t i) {  // 0 is the unchanged copy
    const std::string text =
        i == 0 ? source : replace_once(source, mutants[i - 1].from, mutants[i - 1].to);
    return CompiledKernel(text, folder.path / std::to_string(i));
  };
  std::vector<std::string> names{"(unchanged)"};
  for (const Mutant& mutant : mutants) names.emplace_back(mutant.name);
  for (std::size_t i = 0; i < names.size(); i += 2) {
    auto beside = std::async(std::launch::async, [&, next = i + 1] {
      std::vector<CompiledKernel> made;
      if (next < names.size()) made.push_back(compile(next));
      return made;
    });
    std::vector<CompiledKernel> pair{compile(i)};
    for (CompiledKernel& kernel : beside.get()) pair.push_back(std::move(kernel));
    for (std::size_t j = 0; j < pair.size(); ++j) {
      RedisClient client(server.unix_socket());
      const auto rows = pair[j].rows();
      const Finding finding = examine(client, fragments, rows, random);
      if (i + j > 0) print_row("kernel", names[i + j], finding);
      INFO("kernel: " << names[i + j] << ": " << finding.difference);
      CHECK(finding.by.empty() == (i + j == 0));
    }
  }
}
