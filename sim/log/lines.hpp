// The lines of a file, one after the other, within bounds. Threading: one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>

namespace sluice::tool {

/// Of a longer line, so many bytes and one more are seen.
inline constexpr std::size_t longest_line = 65'536;

/// Is told how many lines have been read, now and then.
using LinesRead = std::function<void(std::uint64_t lines)>;

/// Calls `see` with each line, without its end ("\n" or "\r\n"), and with whether it is longer than
/// longest_line. The view holds until `see` returns. Throws std::system_error if reading fails, and
/// what `see` throws.
void read_lines(std::FILE* file, const std::function<void(std::string_view, bool too_long)>& see,
                const LinesRead& progress = {});

/// Closes what it holds, unless that is the standard input.
struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace sluice::tool
