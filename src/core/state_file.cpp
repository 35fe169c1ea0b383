// See state_file.hpp.
#include "src/core/state_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "sluice/extend/idempotency_record.hpp"
#include "sluice/rules/learned_rate.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/version.hpp"
#include "src/core/key_name.hpp"

namespace sluice::detail {
namespace {

constexpr std::string_view form = "sluice states ";
constexpr const char* this_form = "1";
/// The longest state has max_state_words words of 16 digits.
constexpr std::size_t longest_line = std::size_t{8} << 20;

constexpr Word window[]{1, 1};
constexpr Word always = word_limit / 2;
constexpr Word hour = UtilizationRule::max_span;

/// Requests to the first row of a kind that changes nothing, which every sound state answers. Of
/// the kinds that are not here, all words are possible.
constexpr struct {
  StateKind kind;
  Arguments args;
  std::span<const Word> table{};
} questions[]{
    {StateKind::shared_sliding_window, {word_limit, always}},
    {StateKind::shared_token_bucket, {word_limit, 0, always}},
    {StateKind::leases, {word_limit, 1, 0}},
    {StateKind::slot_lock, {1, 1, 0}},
    {StateKind::utilization, {UtilizationRule::one, hour - 1, 1, 1, hour, 1, 0}},
    {StateKind::gate, {1, 1, 0, 0}},
    {StateKind::wait_line, {word_limit}},
    {StateKind::fixed_window, {1, 1}},
    {StateKind::sliding_window_counter, {1, 1, 0}},
    {StateKind::sliding_window, {1, 0, 0, 1}, window},
    {StateKind::learned_rate, {word_limit, 1, 1, 1, LearnedRateRule::min_forget, 0}},
};

/// "a token bucket" as one word.
std::string word_of(const StateDescription& kind) {
  std::string word = kind.name;
  for (const std::string_view article : {"a ", "the "}) {
    if (word.starts_with(article)) word.erase(0, article.size());
  }
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

/// Null if there is none, or if it has no state.
const StateDescription* find_kind(Word number) noexcept {
  for (const StateDescription& each : state_descriptions) {
    const bool has_state = each.kind != StateKind::constant;
    if (has_state && static_cast<Word>(each.kind) == number) return &each;
  }
  return nullptr;
}

[[noreturn]] void fail(const char* verb, const std::string& path, int error) {
  throw std::runtime_error(std::string("cannot ") + verb + " " + path + ": " +
                           std::strerror(error));
}

class Reader {
 public:
  Reader(const std::string& path, Word now)
      : path_(path), now_(now), file_(path, std::ios::binary), line_(longest_line) {
    if (!file_) fail("read", path, errno);
  }

  std::vector<SavedState> read() {
    if (!next() || !rest_.starts_with(form)) refuse("this is no file of states of sluice");
    rest_.remove_prefix(form.size());
    if (const std::string found(part().substr(0, 20)); found != this_form) {
      refuse("form " + found +
             " of a file of states; this version (" SLUICE_VERSION_STRING ") reads form " +
             this_form);
    }
    std::vector<SavedState> states;
    for (;;) {
      if (!next()) refuse("the file has no last line \"end N\": it was written in part");
      if (rest_.starts_with("end ")) break;
      SavedState read = state();
      if (!states.empty() && states.back().key >= read.key) {
        refuse(read.key + ": the keys are not in ascending order, each once");
      }
      states.push_back(std::move(read));
    }
    if (rest_ != "end " + std::to_string(states.size())) {
      refuse("the file has " + std::to_string(states.size()) +
             " states, and its end another number");
    }
    if (next()) refuse("lines behind the last one");
    return states;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(path_ + ":" + std::to_string(number_) + ": " + why);
  }

  /// False at the end.
  bool next() {
    ++number_;
    errno = 0;
    file_.getline(line_.data(), static_cast<std::streamsize>(line_.size()));
    const auto size = static_cast<std::size_t>(file_.gcount());
    if (file_.bad()) fail("read", path_, errno != 0 ? errno : EIO);
    if (size == 0) return false;
    if (file_.fail()) refuse("a line of more than " + std::to_string(longest_line) + " bytes");
    rest_ = {line_.data(), size - (file_.eof() ? 0 : 1)};
    if (rest_.ends_with('\r')) refuse("the line ends with CR LF: the file was changed on its way");
    return true;
  }

  std::string_view part() noexcept {
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(found.size() + 1, rest_.size()));
    return found;
  }
  /// A number from `least` to `most`, or empty.
  std::optional<Word> number(Word least, Word most) noexcept {
    const std::string_view digits = part();
    Word value = -1;
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value);
    const bool fits = error == std::errc() && at == end && value >= least && value <= most;
    return fits ? std::optional(value) : std::nullopt;
  }

  SavedState state() {
    const std::string key(part());
    const auto name = KeyName::parse(key);
    if (!name || !name->prefix.empty()) {
      refuse("a line is KEY NUMBER KIND EXPIRY WORD..., and KEY is {tag}:name or {tag}:name:unit");
    }
    const std::string number_of_kind(rest_.substr(0, rest_.find(' ')).substr(0, 20));
    const StateDescription* const kind = find_kind(number(0, word_limit).value_or(0));
    const std::string word(part().substr(0, 40));
    if (kind == nullptr || word != word_of(*kind)) {
      refuse(key + ": this version (" SLUICE_VERSION_STRING ") reads no kind " + number_of_kind +
             " " + word);
    }
    const auto expiry = number(1, word_limit);
    if (!expiry) refuse(key + ": the expiry must be 1 to 2^52, in microseconds since 1970");
    SavedState state{key, kind->kind, *expiry, {}};
    while (!rest_.empty() && state.words.size() <= max_state_words) {
      const auto read = number(0, 2 * word_limit);
      if (!read) refuse(key + ": what follows the expiry must be words, 0 to 2^52");
      state.words.push_back(*read);
    }
    if (!is_sound(kind->kind, state.words, now_)) {
      refuse(key + ": words that " + kind->name + " never has");
    }
    return state;
  }

  const std::string& path_;
  Word now_;
  std::ifstream file_;
  std::vector<char> line_;
  std::string_view rest_;  // of the line
  std::size_t number_ = 0;
};

void write(const std::string& path, const std::vector<SavedState>& states) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << form << this_form << ' ' << SLUICE_VERSION_STRING << '\n';
  for (const SavedState& each : states) {
    const auto number = static_cast<Word>(each.kind);
    file << each.key << ' ' << number << ' ' << word_of(*find_kind(number)) << ' ' << each.expiry;
    for (const Word word : each.words) file << ' ' << word;
    file << '\n';
  }
  file << "end " << states.size() << '\n';
  file.close();
  if (!file) fail("write", path, errno);
}

/// Returns 0 when the disk has what was written to the file or the folder, otherwise an errno.
int sync_to_disk(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error;
}

}  // namespace

bool is_sound(StateKind kind, std::span<const Word> words, Word now) noexcept {
  using Record = IdempotencyRecord;
  const bool is_record = kind == StateKind::idempotency_record;
  const std::size_t least = is_record ? Record::words_for(1, 0) : is_cell(kind) ? cell_words : 1;
  const std::size_t most = is_record       ? Record::max_words
                           : is_cell(kind) ? cell_words
                                           : max_state_words;
  // The hints in a record may be twice as large as a word.
  const Word limit = is_record ? 2 * word_limit : word_limit;
  const auto is_word = [limit](Word w) { return w >= 0 && w <= limit; };
  if (kind == StateKind::constant || words.size() < least || words.size() > most ||
      !std::all_of(words.begin(), words.end(), is_word)) {
    return false;
  }
  if (is_record) return words[0] > 0;
  const auto* const question = std::find_if(std::begin(questions), std::end(questions),
                                            [kind](const auto& each) { return each.kind == kind; });
  if (question == std::end(questions)) return true;
  const auto rows = operations();
  const auto row = std::find_if(rows.begin(), rows.end(), [kind](const Operation* each) {
    return each->kind == kind && !each->writes;
  });
  Effects effects;
  return run(**row, words, {question->args, question->table}, now, effects).status !=
         -static_cast<Word>(Errc::corrupt_state);
}

std::size_t write_states(const std::string& path, std::vector<SavedState> states) {
  const auto before = [](const SavedState& a, const SavedState& b) { return a.key < b.key; };
  const auto same = [](const SavedState& a, const SavedState& b) { return a.key == b.key; };
  std::stable_sort(states.begin(), states.end(), before);
  // Of those of one key the last: from the back it is the first.
  states.erase(states.begin(), std::unique(states.rbegin(), states.rend(), same).base());
  std::error_code ignored;
  const auto there = std::filesystem::symlink_status(path, ignored);
  if (exists(there) && !is_regular_file(there)) {
    write(path, states);
    return states.size();
  }
  const std::string part = path + ".part";
  try {
    write(part, states);
    // Before the rename: after a power failure the name has all of the old file or of the new one.
    if (const int error = sync_to_disk(part)) fail("write", path, error);
    if (std::rename(part.c_str(), path.c_str()) != 0) fail("write", path, errno);
  } catch (...) {
    std::remove(part.c_str());
    throw;
  }
  // Some file systems cannot sync a folder; the file is whole there as well.
  const std::string folder = std::filesystem::path(path).parent_path().string();
  sync_to_disk(folder.empty() ? "." : folder);
  return states.size();
}

std::vector<SavedState> read_states(const std::string& path, Word now) {
  return Reader(path, now).read();
}

}  // namespace sluice::detail
