#include "sim/study/new_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace sluice::sim::scenario {

namespace fs = std::filesystem;

NewFile::NewFile(fs::path path) : path_(std::move(path)), beside_(path_) {
  std::error_code error;
  if (!fs::exists(path_, error) || fs::is_regular_file(path_, error)) beside_ += ".part";
  errno = 0;
  out_.open(beside_, std::ios::binary | std::ios::trunc);
  if (!out_) fail("be opened for writing", errno);
}

NewFile::~NewFile() {
  out_.close();
  std::error_code ignored;
  if (beside_ != path_) fs::remove(beside_, ignored);
}

void NewFile::commit() {
  const bool is_whole = out_.good();
  if (!is_whole) {  // another write tells the reason
    out_.clear();
    out_.put('\n');
  }
  errno = 0;
  out_.flush();
  if (!is_whole || !out_) fail("be written", errno);
  out_.close();
  if (beside_ == path_) return;
  std::error_code error;
  fs::rename(beside_, path_, error);
  if (error) fail("be replaced", error.value());
}

void NewFile::fail(const char* what, int reason) const {
  throw std::runtime_error(path_.string() + ": cannot " + what +
                           (reason != 0 ? std::string(": ") + std::strerror(reason) : ""));
}

}  // namespace sluice::sim::scenario
