// See state_file.hpp.
#include "src/core/state_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "sluice/extend/idempotency_record.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/gate.hpp"
#include "sluice/rules/learned_rate.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/shared_sliding_window.hpp"
#include "sluice/rules/shared_token_bucket.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/rules/slot_lock.hpp"
#include "sluice/rules/utilization.hpp"
#include "sluice/rules/wait_line.hpp"
#include "sluice/version.hpp"
#include "src/core/key_name.hpp"

namespace sluice::detail {
namespace {

constexpr std::string_view form = "sluice states ";
constexpr std::string_view this_form = "1";
/// The longest state has max_state_words words of 16 digits.
constexpr std::size_t longest_line = std::size_t{8} << 20;

constexpr Word window[]{SlidingWindowRule::max_limit, SlidingWindowRule::max_span};

/// A request that every sound state of its kind answers. Of the kinds that are not here, all words
/// are possible.
constexpr struct {
  const Operation* row;
  Arguments args;
  std::span<const Word> table{};
} questions[]{
    {&shared_sliding_window_config, {word_limit, SharedSlidingWindowRule::max_keep_alive}},
    {&shared_token_bucket_peek, {word_limit, 0, SharedTokenBucketRule::max_keep_alive}},
    {&leases_peek, {word_limit, 1, 0}},
    {&slot_lock_peek, {1, 1, 0}},
    {&utilization_peek,
     {UtilizationRule::one, UtilizationRule::max_span - 1, 1, 1, UtilizationRule::max_span, 1, 0}},
    {&gate_peek, {1, GateRule::max_cap, 0, 0}},
    {&wait_line_peek, {word_limit}},
    {&fixed_window_peek, {FixedWindowRule::max_limit, 1}},
    {&sliding_window_counter_peek, {1, 1, 0}},
    {&sliding_window_peek, {window[0], 0, 0, window[1]}, window},
    {&learned_rate_peek,
     {word_limit, 1, 1, LearnedRateRule::max_rate, LearnedRateRule::max_forget, 0}},
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

const StateDescription* find_kind(Word number) noexcept {
  for (const StateDescription& each : state_descriptions) {
    if (static_cast<Word>(each.kind) == number) return &each;
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
      : path_(path),
        now_(now),
        file_(path, std::ios::binary),
        line_(std::make_unique<char[]>(longest_line)) {
    if (!file_) fail("read", path, errno);
  }

  std::vector<SavedState> read() {
    read_first();
    std::vector<SavedState> states;
    for (;;) {
      if (!next()) refuse("the file has no last line \"end N\": it was written in part");
      if (rest_.starts_with("end ")) break;
      states.push_back(state());
    }
    rest_.remove_prefix(4);
    if (number() != static_cast<Word>(states.size())) {
      refuse("the last line tells another number of states than the file has, " +
             std::to_string(states.size()));
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
    file_.getline(line_.get(), static_cast<std::streamsize>(longest_line));
    const auto size = static_cast<std::size_t>(file_.gcount());
    if (file_.bad()) fail("read", path_, errno != 0 ? errno : EIO);
    if (size == 0) return false;
    if (file_.fail()) refuse("a line of more than " + std::to_string(longest_line) + " bytes");
    rest_ = {line_.get(), size - (file_.eof() ? 0 : 1)};
    return true;
  }

  void read_first() {
    if (!next() || !rest_.starts_with(form)) refuse("this is no file of states of sluice");
    rest_.remove_prefix(form.size());
    if (const std::string_view found = part(); found != this_form) {
      refuse("form " + std::string(found.substr(0, 20)) + " of a file of states; this version (" +
             SLUICE_VERSION_STRING + ") reads form " + std::string(this_form));
    }
  }

  std::string_view part() noexcept {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return found;
  }

  std::optional<Word> number() noexcept {
    const std::string_view digits = part();
    Word value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
  }

  SavedState state() {
    SavedState state;
    state.key = part();
    const auto name = KeyName::parse(state.key);
    if (!name || !name->prefix.empty()) {
      refuse("a line is KEY NUMBER KIND EXPIRY WORD..., and KEY is {tag}:name or {tag}:name:unit");
    }
    if (!keys_.empty() && !(keys_ < state.key)) {
      refuse(state.key + ": the keys are not in ascending order, each once");
    }
    keys_ = state.key;
    const StateDescription& kind = read_kind(state.key);
    state.kind = kind.kind;
    const auto expiry = number();
    if (!expiry || *expiry < 1 || *expiry > word_limit) {
      refuse(state.key + ": the expiry must be 1 to 2^52, in microseconds since 1970");
    }
    state.expiry = *expiry;
    while (!rest_.empty()) read_word(state);
    if (!is_sound(state.kind, state.words, now_)) {
      refuse(state.key + ": words that " + kind.name + " never has");
    }
    return state;
  }

  const StateDescription& read_kind(const std::string& key) {
    const auto number = this->number();
    const std::string_view word = part();
    const StateDescription* const kind = number ? find_kind(*number) : nullptr;
    if (kind == nullptr || kind->kind == StateKind::constant) {
      refuse(key + ": this version (" + SLUICE_VERSION_STRING + ") reads no kind " +
             (number ? std::to_string(*number) : "?") + " " + std::string(word.substr(0, 40)));
    }
    if (word != word_of(*kind)) {
      refuse(key + ": kind " + std::to_string(*number) + " is " + word_of(*kind) + ", not " +
             std::string(word.substr(0, 40)));
    }
    return *kind;
  }

  void read_word(SavedState& state) {
    const auto word = number();
    // The hints in the answer to a request id may be twice as large as a word.
    const Word most = state.kind == StateKind::idempotency_record ? 2 * word_limit : word_limit;
    if (!word || *word < 0 || *word > most) {
      refuse(state.key + ": word " + std::to_string(state.words.size() + 1) + " must be 0 to " +
             std::to_string(most));
    }
    if (state.words.size() == max_state_words) {
      refuse(state.key + ": more than " + std::to_string(max_state_words) + " words");
    }
    state.words.push_back(*word);
  }

  const std::string& path_;
  Word now_;
  std::ifstream file_;
  std::unique_ptr<char[]> line_;
  std::string_view rest_;  // of the line
  std::size_t number_ = 0;
  std::string keys_;  // the last one
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

}  // namespace

bool is_sound(StateKind kind, std::span<const Word> words, Word now) noexcept {
  if (kind == StateKind::constant || words.empty()) return false;
  if (is_cell(kind) && words.size() != cell_words) return false;
  if (kind == StateKind::idempotency_record) {
    return words.size() >= IdempotencyRecord::words_for(1, 0) &&
           words.size() <= IdempotencyRecord::max_words && words[0] > 0;
  }
  if (std::any_of(words.begin(), words.end(), [](Word w) { return w < 0 || w > word_limit; })) {
    return false;
  }
  for (const auto& [row, args, table] : questions) {
    Effects effects;
    if (row->kind == kind && run(*row, words, {args, table}, now, effects).status ==
                                 -static_cast<Word>(Errc::corrupt_state)) {
      return false;
    }
  }
  return true;
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
    if (std::rename(part.c_str(), path.c_str()) != 0) fail("write", path, errno);
  } catch (...) {
    std::remove(part.c_str());
    throw;
  }
  return states.size();
}

std::vector<SavedState> read_states(const std::string& path, Word now) {
  return Reader(path, now).read();
}

}  // namespace sluice::detail
