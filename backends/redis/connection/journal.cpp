#include "backends/redis/connection/journal.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "backends/redis/connection/login.hpp"

namespace sluice::redis_detail {
namespace {

constexpr std::size_t longest_words = 200;

/// A server may quote a part of a login, in upper or lower case. Shorter parts reveal nothing.
constexpr std::size_t shortest_part = 4;

/// Replies to AUTH that quote nothing, to their end or up to where they vary; a longer one behind
/// its beginning.
constexpr std::array<std::string_view, 9> known_sentences{
    "WRONGPASS invalid username-password pair",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOAUTH Authentication required.",
    "ERR invalid password",
    "ERR Client sent AUTH, but no password is set",
    "ERR AUTH <password> called without any password configured for the default user",
    "ERR max number of clients reached",
    "LOADING Redis is loading the dataset in memory",
    "DENIED Redis is running in protected mode"};

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The number of bytes at the front of `text` that occur anywhere in the secret.
std::size_t common_part(std::string_view text, std::string_view secret) noexcept {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  std::size_t longest = 0;
  for (std::size_t start = 0; start < secret.size(); ++start) {
    const std::string_view rest = secret.substr(start);
    const auto [end, _] = std::mismatch(text.begin(), text.end(), rest.begin(), rest.end(), same);
    longest = std::max(longest, static_cast<std::size_t>(end - text.begin()));
  }
  return longest;
}

/// True if the text quotes the secret, or a part of it.
bool quotes(std::string_view text, std::string_view secret) noexcept {
  if (secret.empty()) return false;
  const std::size_t least = std::min(shortest_part, secret.size());
  for (; !text.empty(); text.remove_prefix(1)) {
    if (common_part(text, secret) >= least) return true;
  }
  return false;
}

bool is_printable(char c) noexcept { return c >= ' ' && c <= '~'; }

std::string_view verb_of(RedisStep step) noexcept {
  switch (step) {
    case RedisStep::look_up:
      return "look-up of ";
    case RedisStep::connect:
      return "connect to ";
    case RedisStep::tls:
      return "TLS handshake with ";
    case RedisStep::login:
      return "login at ";
    case RedisStep::select:
      return "SELECT at ";
    case RedisStep::discover:
      return "question to ";
    case RedisStep::serve:
      return "connection to ";
  }
  return "";
}

}  // namespace

std::string presentable(std::string_view words) {
  std::string text(words);
  std::ranges::replace_if(
      text, [](char c) { return !is_printable(c); }, '?');
  if (text.size() > longest_words) text = text.substr(0, longest_words) + "...";
  return text;
}

std::string without_login(std::string_view words, const RedisCredentials& login) {
  std::string_view unknown = words;
  for (const std::string_view known : known_sentences) {
    if (words.starts_with(known)) unknown = words.substr(known.size());
  }
  const bool tells = quotes(unknown, login.password.reveal()) || quotes(unknown, login.username);
  if (!tells) return std::string(words);
  return "words that are not shown, because they may quote the login";
}

std::string text_of(const RedisAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string no_answer_within(Span span) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(span);
  return "no answer within " + std::to_string(whole.count()) + " ms";
}

Journal::Journal(const RedisOptions& options) : options_(options) {}

void Journal::note_attempt(RedisStep step, std::string_view address) {
  const RedisEvent attempt{
      RedisEvent::Kind::failed, step, std::string(address), "no answer yet", {}};
  auto text = std::make_shared<const std::string>(attempt.text());
  const std::lock_guard lock(mutex_);
  attempt_ = std::move(text);
}

void Journal::note(RedisEvent event, Errc code) {
  auto text = std::make_shared<const std::string>(event.text());
  untold_.push_back(event);
  const std::lock_guard lock(mutex_);
  latest_ = text;
  reasons_[code] = std::move(text);
  has_reasons_ = true;
  last_failure_ = std::move(event);
}

void Journal::note_failure(RedisStep step, std::string_view address, std::string_view cause,
                           Errc code) {
  note({RedisEvent::Kind::failed, step, std::string(address), presentable(cause), code}, code);
  const std::lock_guard lock(mutex_);
  ++failed_attempts_;
}

void Journal::note_connection(std::string_view address) {
  untold_.push_back({RedisEvent::Kind::connected, RedisStep::serve, std::string(address), {}, {}});
  const std::lock_guard lock(mutex_);
  attempt_ = nullptr;
  latest_ = nullptr;
  // A call with one of these errors may still be in a pause, and fail with it.
  std::erase_if(reasons_, [](const auto& reason) { return !is_unfit(reason.first); });
}

void Journal::note_change(RedisEvent::Kind kind, std::string_view address) {
  untold_.push_back({kind, RedisStep::discover, std::string(address), {}, {}});
}

void Journal::note_decision() {
  if (!has_reasons_) return;
  has_reasons_ = false;
  const std::lock_guard lock(mutex_);
  reasons_.clear();
}

void Journal::note_loss(std::string_view address, std::string_view cause, Errc code) noexcept try {
  note({RedisEvent::Kind::lost, RedisStep::serve, std::string(address), presentable(cause), code},
       code);
} catch (const std::bad_alloc&) {
  return;
}

void Journal::note_answer(std::string_view address, std::string_view words, Errc code) noexcept
    try {
  auto text = std::make_shared<const std::string>(std::string(address) + ": " + presentable(words));
  const std::lock_guard lock(mutex_);
  reasons_[code] = std::move(text);
  has_reasons_ = true;
} catch (const std::bad_alloc&) {
  return;
}

void Journal::tell() {
  const std::vector<RedisEvent> events = std::exchange(untold_, {});
  if (!options_.on_event) return;
  for (const RedisEvent& event : events) {
    if (stopped_) return;
    try {
      options_.on_event(event);
    } catch (...) {  // the program's own; it must not end the I/O thread
    }
  }
}

std::shared_ptr<const std::string> Journal::reason_of(Errc code) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = reasons_.find(code); found != reasons_.end()) return found->second;
  if (code != Errc::not_connected) return nullptr;
  return latest_ != nullptr ? latest_ : attempt_;  // a Sentinel may have refused the login
}

std::optional<RedisEvent> Journal::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

std::uint64_t Journal::failed_attempts() const {
  const std::lock_guard lock(mutex_);
  return failed_attempts_;
}

}  // namespace sluice::redis_detail

namespace sluice {

std::string RedisEvent::text() const {
  if (kind == Kind::switched) return "the Sentinels name another master: " + address;
  if (kind == Kind::map_changed) return "slots have moved, by the map of " + address;
  std::string text(redis_detail::verb_of(step));
  text += address;
  if (!cause.empty()) text += ": " + cause;
  if (cause.ends_with('.') && !cause.ends_with("...")) text.pop_back();  // others go on from here
  return text;
}

}  // namespace sluice
