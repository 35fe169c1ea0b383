// Looking at a file of limits, and replacing tables.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "sluice/config/limit_file.hpp"

namespace sluice::config {

LimitWatch::LimitWatch(std::string path, Clock& clock, std::function<void(const FileChange&)> told,
                       const WatchOptions& options)
    : path_(std::move(path)),
      clock_(clock),
      told_(std::move(told)),
      options_(options),
      thread_(clock) {
  if (options_.period < std::chrono::milliseconds{1}) {
    throw std::invalid_argument("the period of a watch must be at least 1000 us, got " +
                                std::to_string(options_.period.count()) + " us");
  }
}

template <class Limit>
void LimitWatch::add(std::string_view name, std::shared_ptr<LimitTable<Limit>> table,
                     LimitList<Limit> (LimitFile::*list_of)(detail::TextArg) const) {
  const std::string own(name);
  if (!table) throw std::invalid_argument("the table \"" + own + "\" is a null pointer");
  const std::lock_guard lock(mutex_);
  if (std::any_of(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.name == own; })) {
    throw std::invalid_argument("there is a table \"" + own + "\" already");
  }
  kept_.push_back({own, [table, list_of, own](const LimitFile& file) -> Replace {
                     LimitList<Limit> list = (file.*list_of)(own);
                     try {
                       table->check(list);
                     } catch (const std::invalid_argument& error) {
                       throw std::runtime_error(file.place_of_spans(own) + ": " + error.what());
                     }
                     return [table, list, own](std::vector<std::string>& changes) {
                       for (const auto& line : table->replace(list)) {
                         changes.push_back(own + ": " + line);
                       }
                     };
                   }});
}

void LimitWatch::keep(detail::TextArg name, std::shared_ptr<QuotaTable> table) {
  add(name, std::move(table), &LimitFile::quotas);
}
void LimitWatch::keep(detail::TextArg name, std::shared_ptr<LimitTable<Word>> table) {
  add(name, std::move(table), &LimitFile::counts);
}
void LimitWatch::keep(detail::TextArg name, std::shared_ptr<LimitTable<WindowLimits>> table) {
  add(name, std::move(table), &LimitFile::windows);
}

LimitWatch::Look LimitWatch::look() const {
  struct stat file {};
  // Opening a pipe would wait for whoever writes to it.
  if (::stat(path_.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return {};
  const auto ns = [](const timespec& at) { return at.tv_sec * 1'000'000'000LL + at.tv_nsec; };
  Look now;
  now.device = file.st_dev;
  now.inode = file.st_ino;
  now.size = static_cast<std::uintmax_t>(file.st_size);
  now.changed_ns = ns(file.st_mtim);
  now.inode_changed_ns = ns(file.st_ctim);
  now.is_readable = std::ifstream(path_).is_open();
  return now.is_readable ? now : Look{};
}

bool LimitWatch::poke() {
  const std::lock_guard lock(mutex_);
  const Look now = look();
  const bool is_settled = std::exchange(seen_, now) == now;
  if (!is_settled || applied_ == now) return false;
  FileChange change;
  const std::vector<Replace> replaces = read(change.error);
  if (look() != now) return false;  // it was read while it was written
  applied_ = now;
  for (const Replace& replace : replaces) replace(change.changes);
  if (told_ && !(change.changes.empty() && change.error.empty())) told_(change);
  return !change.changes.empty();
}

/// Of all tables, or of none.
std::vector<LimitWatch::Replace> LimitWatch::read(std::string& error) const {
  std::vector<Replace> all;
  try {
    const LimitFile file(path_);
    for (const Kept& kept : kept_) all.push_back(kept.read(file));
  } catch (const std::exception& failed) {
    error = failed.what();
    all.clear();
  }
  return all;
}

void LimitWatch::start() {
  thread_.start([this] {
    try {
      poke();
    } catch (...) {  // NOLINT(bugprone-empty-catch): of `told`; the next look is a period later
    }
    return clock_.now() + options_.period;
  });
}

void LimitWatch::stop() noexcept { thread_.stop(); }

}  // namespace sluice::config
