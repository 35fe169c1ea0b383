// Limits in TOML files, which are watched on request. Component config.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/detail/clock_thread.hpp"
#include "sluice/limit_table.hpp"

namespace sluice::config {

/// The lists of limits in a TOML file: a table for each list.
///
///     [api]                              # for quotas("api")
///     everyone = "10/s:20"               # a quota, as Quota::parse() reads it
///     unit = "1h"                        # of LimitList::unit(); "1min" if it is left out
///     allow = ["health"]
///     deny = ["mallory"]
///     tiers.gold = { limit = "100/s:200", keys = ["alice", "bob"] }
///     keys.carol = "3/min"
///
///     [jobs]                             # for counts("jobs")
///     everyone = 5                       # or "never", "unlimited"
///
///     [partner]                          # for windows("partner")
///     everyone = ["25/5s", "400/2min"]   # count and span of each window
///
/// A value that holds what was read; reading it is thread-safe.
class LimitFile {
 public:
  /// Reads a regular file, and no pipe. Throws std::runtime_error, which names the file, and the
  /// line where it is no TOML.
  explicit LimitFile(const std::string& path);
  /// The same of a text; `path` is what exceptions call it.
  LimitFile(const std::string& path, std::string_view text);
  ~LimitFile();
  LimitFile(LimitFile&&) noexcept;
  LimitFile& operator=(LimitFile&&) noexcept;

  /// The list of this name. Throws std::runtime_error, which names the file, the line and the
  /// entry, for an entry that is unknown (with the most similar one), missing or of another type,
  /// and for what LimitList does not accept.
  [[nodiscard]] LimitList<Quota> quotas(detail::TextArg name) const;
  [[nodiscard]] LimitList<Word> counts(detail::TextArg name) const;
  [[nodiscard]] LimitList<WindowLimits> windows(detail::TextArg name) const;

 private:
  friend class LimitWatch;
  struct Content;

  /// Where a list says in which unit or in which spans it counts: "limits.toml:3: api.unit".
  /// REQUIRES: the list can be read.
  [[nodiscard]] std::string place_of_spans(std::string_view name) const;

  std::unique_ptr<Content> content_;
};

struct WatchOptions {
  /// How often the file is looked at, by the clock. 1 ms or more.
  Span period = std::chrono::seconds{1};
};

/// What a watch has seen in a changed file.
struct FileChange {
  std::vector<std::string> changes;  ///< by table: "api: everyone: 10/s -> 5/s"
  std::string error;                 ///< empty, or why nothing was replaced
};

/// Replaces tables when their file changes. All tables of the file are replaced, or none: a file
/// that cannot be read, or that is wrong in any of them, is told and changes nothing. A file that
/// is being written is left alone until two looks in a row have found the same file, of one size
/// and one time of change; replace it by renaming, if a half-written file would be valid.
///
///     config::LimitWatch watch("limits.toml", store.clock(), log_change);
///     watch.keep("api", quotas);
///     watch.start();                       // or watch.poke() now and then
///
/// Thread-safe.
class LimitWatch {
 public:
  /// `told` is called for each change and each new error, one at a time, on the thread of poke() or
  /// start(); it must not call this object. Throws std::invalid_argument for a period below 1 ms.
  LimitWatch(std::string path, Clock& clock, std::function<void(const FileChange&)> told,
             const WatchOptions& options = {});
  LimitWatch(const LimitWatch&) = delete;
  LimitWatch& operator=(const LimitWatch&) = delete;
  /// Stops the thread, if there is one.
  ~LimitWatch() = default;

  /// Keeps a table as the list of this name in the file says, from the next change of the file on.
  /// Throws std::invalid_argument for a null pointer, or for a name that has a table.
  void keep(detail::TextArg name, std::shared_ptr<QuotaTable> table);
  void keep(detail::TextArg name, std::shared_ptr<LimitTable<Word>> table);
  void keep(detail::TextArg name, std::shared_ptr<LimitTable<WindowLimits>> table);

  /// Looks at the file once. True: a table was replaced. Throws what `told` throws.
  bool poke();
  /// Starts a thread that looks at it every period; no effect if it runs. Throws std::system_error
  /// if there can be no thread.
  void start();
  /// Waits until the thread has ended.
  void stop() noexcept;

 private:
  /// Replaces the list of a table, and adds what changes.
  using Replace = std::function<void(std::vector<std::string>& changes)>;
  struct Kept {
    std::string name;
    std::function<Replace(const LimitFile&)> read;  // throws what is wrong in the file
  };
  /// What tells two contents of the file apart. A file that replaces another may have its size and
  /// its time (`cp -p`), but not its inode; one that is overwritten has another time of its inode.
  /// One that may not be read has none of them: it is read when it may be.
  struct Look {
    std::uintmax_t device = 0;
    std::uintmax_t inode = 0;
    std::uintmax_t size = 0;
    std::int64_t changed_ns = 0;
    std::int64_t inode_changed_ns = 0;
    bool is_readable = false;
    friend bool operator==(const Look&, const Look&) = default;
  };

  template <class Limit>
  void add(std::string_view name, std::shared_ptr<LimitTable<Limit>> table,
           LimitList<Limit> (LimitFile::*list_of)(detail::TextArg) const);
  [[nodiscard]] Look look() const;
  [[nodiscard]] std::vector<Replace> read(std::string& error) const;

  const std::string path_;
  Clock& clock_;
  const std::function<void(const FileChange&)> told_;
  const WatchOptions options_;
  std::mutex mutex_;
  std::vector<Kept> kept_;
  std::optional<Look> seen_;     // by the last look
  std::optional<Look> applied_;  // or told as an error
  detail::ClockThread thread_;   // last, as it uses the others
};

}  // namespace sluice::config
