#include "journal.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "login.hpp"

namespace sluice::redis_detail {
namespace {

constexpr std::size_t longest_words = 200;

/// Logins of which the server may still quote a part: those of the servers and of the Sentinels,
/// before and after a change.
constexpr std::size_t max_credentials = 8;

/// A server may quote a part of what it received, in upper or lower case. Shorter parts reveal
/// nothing.
constexpr std::size_t shortest_part = 4;

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

/// `text` without its parts that occur in the secret.
std::string without(std::string_view text, std::string_view secret) {
  const std::size_t least = std::min(shortest_part, secret.size());
  std::string result;
  while (!text.empty()) {
    const std::size_t common = least == 0 ? 0 : common_part(text, secret);
    const bool tells = common > 0 && common >= least;
    if (tells) {
      result += "***";
    } else {
      result += text.front();
    }
    text.remove_prefix(tells ? common : 1);
  }
  return result;
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

std::string presentable(std::string_view words, std::span<const RedisCredentials> credentials) {
  // Secrets are removed before the text is cut, because a cut part could be too short to be
  // recognised.
  std::string text(words);
  for (const RedisCredentials& each : credentials) {
    text = without(without(text, each.password.reveal()), each.username);
  }
  std::ranges::replace_if(
      text, [](char c) { return !is_printable(c); }, '?');
  if (text.size() > longest_words) text = text.substr(0, longest_words) + "...";
  return text;
}

std::string text_of(const RedisAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string no_answer_within(Span span) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(span);
  return "no answer within " + std::to_string(whole.count()) + " ms";
}

Journal::Journal(const RedisOptions& options) : options_(options) {
  note_credentials({options.username, options.password});
  if (options.sentinel) note_credentials({options.sentinel->username, options.sentinel->password});
}

void Journal::note_credentials(RedisCredentials credentials) {
  const auto is_same = [&](const RedisCredentials& known) {
    return known.username == credentials.username &&
           known.password.reveal() == credentials.password.reveal();
  };
  if (std::ranges::any_of(credentials_, is_same)) return;
  if (credentials_.size() == max_credentials) credentials_.erase(credentials_.begin());
  credentials_.push_back(std::move(credentials));
}

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
  note({RedisEvent::Kind::failed, step, std::string(address), presentable(cause, credentials_),
        code},
       code);
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
  note({RedisEvent::Kind::lost, RedisStep::serve, std::string(address),
        presentable(cause, credentials_), code},
       code);
} catch (const std::bad_alloc&) {
  return;
}

void Journal::tell() {
  const std::vector<RedisEvent> events = std::exchange(untold_, {});
  if (!options_.on_event) return;
  for (const RedisEvent& event : events) {
    if (!stopped_) options_.on_event(event);
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
  return text;
}

}  // namespace sluice
