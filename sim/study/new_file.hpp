// NewFile: a file that appears whole, or not at all. Threading: one thread.
#pragma once

#include <filesystem>
#include <fstream>

namespace sluice::sim::scenario {

/// Writes beside the place of the file, which the file takes in commit(). What is not a regular
/// file there, such as a device or a pipe, is written itself. All throw std::runtime_error with the
/// path and the reason.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  /// Leaves nothing half-written.
  ~NewFile();

  [[nodiscard]] std::ostream& out() noexcept { return out_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int reason) const;

  std::filesystem::path path_;
  std::filesystem::path beside_;  // the same, if the file is written itself
  std::ofstream out_;
};

}  // namespace sluice::sim::scenario
