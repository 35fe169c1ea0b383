#include "sim/log/lines.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

namespace sluice::tool {

void read_lines(std::FILE* file, const std::function<void(std::string_view, bool)>& see,
                const LinesRead& progress) {
  std::string line;  // cut behind longest_line and one more
  std::uint64_t lines = 0;
  const auto end_line = [&] {
    ++lines;
    std::string_view text = line;
    const bool too_long = text.size() > longest_line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    see(text, too_long);
    line.clear();
  };
  std::vector<char> buffer(std::size_t{1} << 18);
  for (;;) {
    errno = 0;
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file);
    if (std::ferror(file) != 0) {
      throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "reading failed");
    }
    if (got == 0) break;
    for (std::string_view rest(buffer.data(), got);;) {
      const std::size_t end = rest.find('\n');
      line += rest.substr(0, end).substr(0, longest_line + 1 - line.size());
      if (end == std::string_view::npos) break;
      end_line();
      rest.remove_prefix(end + 1);
    }
    if (progress) progress(lines);
  }
  if (!line.empty()) end_line();
}

}  // namespace sluice::tool
