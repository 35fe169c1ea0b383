#include "sim/log/lines.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

namespace sluice::tool {
namespace {

/// Puts the bytes of a file together to lines of at most longest_line bytes.
class LineCutter {
 public:
  explicit LineCutter(const std::function<void(std::string_view, bool)>& see) : see_(see) {}

  void feed(std::string_view bytes) {
    for (;;) {
      const std::size_t end = bytes.find('\n');
      append(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      flush();
      bytes.remove_prefix(end + 1);
    }
  }

  void finish() {
    if (!line_.empty()) flush();
  }

  [[nodiscard]] std::uint64_t lines() const { return lines_; }

 private:
  void append(std::string_view part) {
    const std::size_t room = longest_line + 1 - line_.size();
    line_ += part.substr(0, room);
  }

  void flush() {
    ++lines_;
    std::string_view text = line_;
    const bool too_long = text.size() > longest_line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    see_(text, too_long);
    line_.clear();
  }

  const std::function<void(std::string_view, bool)>& see_;
  std::string line_;
  std::uint64_t lines_ = 0;
};

}  // namespace

void read_lines(std::FILE* file, const std::function<void(std::string_view, bool)>& see,
                const LinesRead& progress) {
  LineCutter cutter(see);
  std::vector<char> buffer(std::size_t{1} << 18);
  for (;;) {
    errno = 0;
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file);
    if (std::ferror(file) != 0) {
      throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "reading failed");
    }
    if (got == 0) break;
    cutter.feed({buffer.data(), got});
    if (progress) progress(cutter.lines());
  }
  cutter.finish();
}

}  // namespace sluice::tool
