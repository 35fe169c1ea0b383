// A file of a test, which goes with it. Threading: none.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sluice::test {

struct TemporaryFile {
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path.c_str()); }

  [[nodiscard]] std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path) << text; }

  const std::string path =
      std::filesystem::temp_directory_path() / ("sluice-states-" + std::to_string(::getpid()));
};

}  // namespace sluice::test
