// The comparison of kernels and scripts. Requests are pipelined: what must come back is worked out
// when a request is sent, and compared when the replies are read.
#include "tests/twin/twin.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sluice/algorithms/token_bucket.hpp"
#include "sluice/testing/detail/generators.hpp"
#include "tests/twin/wire.hpp"

namespace sluice::test {
namespace {

using testing::detail::log_uniform;

constexpr std::size_t slot_count = 24;
constexpr std::size_t chunk = 200;

std::string describe(const Verdict& v) {
  return "{status " + std::to_string(v.status) + ", remaining " + std::to_string(v.remaining) +
         ", retry_after " + std::to_string(v.retry_after) + ", reset_after " +
         std::to_string(v.reset_after) + "}";
}

std::map<std::string, std::string, std::less<>> load_scripts(RedisClient& client,
                                                             const Twin::Scripts& scripts) {
  std::map<std::string, std::string, std::less<>> shas;
  for (const auto& [name, text] : scripts) {
    const RedisReply reply = client({"SCRIPT", "LOAD", text});
    if (reply.is_error()) throw std::runtime_error(name + ".lua: " + reply.text);
    shas[name] = reply.text;
  }
  return shas;
}

/// Any configuration, often at a corner of what a Quota may hold.
Arguments draw_config(Random& random, StateKind kind) {
  if (kind == StateKind::token_bucket && random.one_in(6)) {
    static const std::array<Quota, 5> corners{
        Quota::per(word_limit - 1, Span{1}), Quota::per(1, Span{1}).burst(word_limit - 1),
        Quota::per(1, Span{word_limit - 1}), Quota::per(word_limit - 2, Span{2}).burst(1),
        Quota::per(67'108'859, Span{67'108'864}).burst(67'108'862)};
    return testing::detail::token_bucket::pack(corners[random.below(corners.size())]);
  }
  return testing::detail::find_generator(kind)->any(random);
}

/// The reply of a script: the nonce, the instant, and four words a step.
std::optional<std::string> differs(const std::string& nonce, Word now,
                                   std::span<const Verdict> verdicts, const RedisReply& reply) {
  if (reply.type != RedisReply::Type::string) return "the script answered: " + reply.text;
  if (reply.text.size() != 16 + 32 * verdicts.size()) {
    return "a reply of " + std::to_string(reply.text.size()) + " bytes";
  }
  if (reply.text.substr(0, 8) != nonce) return "another nonce";
  if (read_le64(reply.text, 8) != now) {
    return "decided at " + std::to_string(read_le64(reply.text, 8));
  }
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const std::size_t at = 16 + 32 * i;
    const Verdict twin{read_le64(reply.text, at), read_le64(reply.text, at + 8),
                       read_le64(reply.text, at + 16), read_le64(reply.text, at + 24)};
    if (twin != verdicts[i]) {
      return "step " + std::to_string(i) + ": kernel " + describe(verdicts[i]) + ", twin " +
             describe(twin);
    }
  }
  return std::nullopt;
}

}  // namespace

Twin::Twin(RedisClient& client, const Scripts& scripts, Rows rows, Random& random)
    : client_(client),
      shas_(load_scripts(client, scripts)),
      rows_(rows),
      random_(random),
      now_(random.between(0, word_limit)) {
  const std::string run = std::to_string(random.next());
  for (std::size_t i = 0; i < slot_count; ++i) {
    slots_.push_back({"{" + run + "}:" + std::to_string(i), {}, false, {}});
    slots_.back().config = draw_config(random_, rows_[0]->kind);
  }
}

void Twin::write_raw(Slot& slot, const std::string& raw) {
  slot.raw = raw;
  slot.wrong_type = false;
  client_.append({"SET", slot.key, raw, "PX", "1000000000"});
  ++preparations_;
}

/// Puts a state of extreme values under the key, or garbage, or nothing.
void Twin::tamper(Slot& slot) {
  const StateKind kind = rows_[0]->kind;
  const auto extreme = [&]() -> Word {
    const std::array<Word, 6> edges{0, 1, word_limit - 1, word_limit, now_, slot.config[0]};
    if (random_.one_in(2)) return now_ - random_.between(0, std::min<Word>(now_, 1'000'000));
    return random_.one_in(2) ? edges[random_.below(edges.size())] : log_uniform(random_, 52);
  };
  switch (random_.below(10)) {
    case 0: {
      const std::array<Word, 6> wrong{-1,        INT64_MIN,   word_limit + 1,
                                      INT64_MAX, -word_limit, word_limit * 2 + 1};
      StateWords words{extreme(), extreme()};
      words[random_.below(words.size())] = wrong[random_.below(wrong.size())];
      return write_raw(slot, encode(kind, words));
    }
    case 1: {
      std::string raw = encode(kind, {extreme(), extreme()});
      const std::array<int, 6> edges{0, 2, 31, 32, 128, 255};
      raw[0] = static_cast<char>(edges[random_.below(edges.size())]);
      return write_raw(slot, raw);
    }
    case 2:
      return write_raw(slot, std::string(1 + random_.below(40), static_cast<char>(kind)));
    case 3:
      client_.append({"DEL", slot.key});
      client_.append({"LPUSH", slot.key, "not a state"});
      client_.append({"PEXPIRE", slot.key, "1000000000"});
      preparations_ += 3;
      slot.raw.clear();
      slot.wrong_type = true;
      return;
    case 4:
      client_.append({"DEL", slot.key});
      ++preparations_;
      slot.raw.clear();
      slot.wrong_type = false;
      return;
    case 5: {  // a stamp around the bound of how far it may lie ahead
      const Word stamp = now_ + TokenBucketRule::max_ahead + random_.between(-1, 1);
      return write_raw(slot, encode(kind, {extreme(), std::min(stamp, word_limit)}));
    }
    default:
      return write_raw(slot, encode(kind, {extreme(), extreme()}));
  }
}

void Twin::move_time() {
  Word to = now_;
  switch (random_.below(24)) {
    case 1:
      to += 1;
      break;
    case 2:
      to += last_.retry_after - random_.between(0, 1);
      break;
    case 3:
      to += last_.reset_after + random_.between(-1, 1);
      break;
    case 4:
      to -= TokenBucketRule::max_ahead + random_.between(-1, 1);
      break;
    case 5:
      to += random_.between(-2 * TokenBucketRule::max_ahead, 0);
      break;
    case 6:
      to += log_uniform(random_, random_.one_in(4) ? 45 : 25);
      break;
    case 7:
      if (random_.one_in(20)) to = random_.between(0, word_limit);
      break;
    case 8:
      if (random_.one_in(40)) to = random_.one_in(2) ? 0 : word_limit;
      break;
    case 9:
    case 10:
      to += random_.between(0, 2'000'000);
      break;
    default:  // most requests come in bursts
      to += random_.between(0, 1);
  }
  now_ = std::clamp<Word>(to, 0, word_limit);
}

Twin::Request Twin::draw_request(Slot& slot) {
  const Operation* row = rows_[random_.below(rows_.size())];
  if (random_.one_in(12)) slot.config = draw_config(random_, row->kind);
  const bool readable = load(slot.raw, slot.wrong_type, row->kind).status > 0;
  if (random_.one_in(readable ? 24 : 2)) tamper(slot);
  Request request{row, &slot, slot.config};
  const auto* generator = testing::detail::find_generator(row->kind);
  generator->draw(random_, request.args);
  if (random_.one_in(40)) generator->impossible(request.args, random_.below(6));
  return request;
}

std::string Twin::foresee(const Request& request, Pending& pending) {
  const Slot& slot = *request.slot;
  Loaded loaded = load(slot.raw, slot.wrong_type, request.row->kind);
  const StateWords before = loaded.words;
  if (loaded.status > 0 && before[1] > now_) {
    const bool far = before[1] > now_ + TokenBucketRule::max_ahead;
    ++(far ? counts_.stamp_far_ahead : counts_.stamp_ahead);
  }
  last_ = loaded.status < 0 ? Verdict{loaded.status, 0, 0, 0}
                            : request.row->apply(loaded.words, request.args, now_);
  const bool allowed = last_.status == Verdict::allowed;
  const bool changed = loaded.words != before;
  ++(allowed ? counts_.allowed : last_.status < 0 ? counts_.failed : counts_.refused);
  pending.changed_unallowed = pending.changed_unallowed || (changed && !allowed);
  pending.wrote.push_back(changed);
  pending.verdicts.push_back(last_);
  pending.what += std::string(request.row->name) + "(";
  for (const Word word : request.args) pending.what += std::to_string(word) + " ";
  pending.what += ") with state " + hex(slot.raw) + "; ";
  return changed ? encode(request.row->kind, loaded.words) : slot.raw;
}

void Twin::decide() {
  move_time();
  const std::size_t steps = random_.one_in(3) ? 1 + random_.below(random_.one_in(8) ? 16 : 4) : 1;
  for (std::size_t i = 0; i < steps; ++i) {
    std::swap(slots_[i], slots_[i + random_.below(slots_.size() - i)]);
  }
  std::vector<Request> requests;
  for (std::size_t i = 0; i < steps; ++i) requests.push_back(draw_request(slots_[i]));

  Pending pending;
  pending.nonce = le64(static_cast<Word>(random_.next()));
  pending.now = now_;
  pending.preparations = std::exchange(preparations_, 0);
  std::vector<std::string> next;
  bool all = true;
  for (const Request& request : requests) {
    next.push_back(foresee(request, pending));
    all = all && pending.verdicts.back().status == Verdict::allowed;
  }
  for (std::size_t i = 0; i < steps; ++i) {
    Slot& slot = *requests[i].slot;
    if (all) slot.raw = next[i];
    pending.wrote[i] = pending.wrote[i] && all;
    pending.keys.push_back(slot.key);
    pending.raw.push_back(slot.raw);
    pending.wrong_type.push_back(slot.wrong_type);
    pending.keep_ms.push_back(1'000'000'000 * random_.between(1, 1'000));
  }
  ++counts_.decisions;
  counts_.steps += steps;
  if (steps > 1) ++counts_.plans;
  pending.what += "at " + std::to_string(now_);
  send(requests, pending);
  pending_.push_back(std::move(pending));
}

void Twin::send(const std::vector<Request>& requests, const Pending& pending) {
  const bool as_plan = requests.size() > 1 || random_.one_in(4);
  std::vector<std::string> parts{"EVALSHA",
                                 shas_.at(as_plan ? "plan" : script_name(*requests[0].row)),
                                 std::to_string(requests.size())};
  for (const std::string& key : pending.keys) parts.push_back(key);
  if (as_plan) parts.push_back(pending.nonce);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string front =
        as_plan ? std::string(1, static_cast<char>(requests[i].row->id)) : pending.nonce;
    parts.push_back(front + pack_args(requests[i].args));
    parts.push_back(std::to_string(pending.keep_ms[i]));
  }
  parts.push_back(std::to_string(now_));
  client_.append(std::vector<std::string_view>(parts.begin(), parts.end()));
  for (const std::string& key : pending.keys) {
    client_.append({"GET", key});
    client_.append({"PTTL", key});
  }
}

std::optional<std::string> Twin::read_state(const Pending& pending, std::size_t index) {
  const RedisReply state = client_.read();
  const Word ttl = client_.read().integer;
  const std::string which = "key " + std::to_string(index) + ": ";
  const bool absent = pending.raw[index].empty() && !pending.wrong_type[index];
  if (state.is_error() != pending.wrong_type[index]) return which + "its type changed";
  if (!state.is_error() && state.text != pending.raw[index]) {
    return which + "kernel leaves " + hex(pending.raw[index]) + ", twin " + hex(state.text);
  }
  constexpr Word slack_ms = 600'000;  // far more than this run takes
  const Word keep = pending.keep_ms[index];
  if (absent ? ttl != -2 : ttl <= 0) return which + "a time to live of " + std::to_string(ttl);
  if (pending.wrote[index] && (ttl > keep || ttl < keep - slack_ms)) {
    return which + "a time to live of " + std::to_string(ttl) + " ms instead of " +
           std::to_string(keep);
  }
  return std::nullopt;
}

std::optional<std::string> Twin::read_all() {
  std::optional<std::string> difference;
  std::size_t index = 0;
  for (const Pending& pending : pending_) {
    for (std::size_t i = 0; i < pending.preparations; ++i) {
      const RedisReply reply = client_.read();
      if (reply.is_error()) throw std::runtime_error("a preparation failed: " + reply.text);
    }
    auto found = differs(pending.nonce, pending.now, pending.verdicts, client_.read());
    if (pending.changed_unallowed) found = "the kernel changed a state that it did not allow";
    for (std::size_t i = 0; i < pending.keys.size(); ++i) {
      const auto in_state = read_state(pending, i);
      if (!found) found = in_state;
    }
    if (found && !difference) {
      difference = pending.what + ": " + *found;
      counts_.to_difference = counts_.decisions - pending_.size() + index + 1;
    }
    ++index;
  }
  pending_.clear();
  return difference;
}

std::optional<std::string> Twin::run(std::size_t decisions) {
  for (std::size_t i = 1; i <= decisions; ++i) {
    decide();
    if (i % chunk != 0 && i != decisions) continue;
    if (auto difference = read_all()) return difference;
  }
  return std::nullopt;
}

std::optional<std::string> Twin::check_server_time(RedisClient& client, const Scripts& scripts,
                                                   Rows rows, Random& random) {
  const auto shas = load_scripts(client, scripts);
  for (int i = 0; i < 200; ++i) {
    const Operation& row = *rows[random.below(rows.size())];
    const bool as_plan = random.one_in(2);
    Arguments args = testing::detail::find_generator(row.kind)->any(random);
    testing::detail::find_generator(row.kind)->draw(random, args);
    const std::string key = "{time}:" + std::to_string(random.next());
    const std::string nonce = le64(static_cast<Word>(random.next()));
    std::vector<std::string> parts{"EVALSHA", shas.at(as_plan ? "plan" : script_name(row)), "1",
                                   key};
    if (as_plan) parts.push_back(nonce);
    parts.push_back((as_plan ? std::string(1, static_cast<char>(row.id)) : nonce) +
                    pack_args(args));
    parts.push_back("1000");
    // A client's idea of the time, which must not count.
    parts.push_back(std::to_string(random.between(0, word_limit)));
    const Word before = client.time_us();
    const RedisReply reply =
        client.command(std::vector<std::string_view>(parts.begin(), parts.end()));
    const Word after = client.time_us();
    const Word at = read_le64(reply.text, 8);
    const std::string what = std::string(row.name) + (as_plan ? " in a plan" : "") + ": ";
    if (reply.is_error()) return what + reply.text;
    if (at < before || at > after) {
      return what + "decided at " + std::to_string(at) + ", the server's time was " +
             std::to_string(before) + " to " + std::to_string(after);
    }
    StateWords state{};
    const Verdict verdict = row.apply(state, args, at);
    if (auto difference = differs(nonce, at, {&verdict, 1}, reply)) return what + *difference;
  }
  return std::nullopt;
}

}  // namespace sluice::test
