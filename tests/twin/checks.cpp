// Two shorter comparisons: on the server's own clock, and on spoilt states.
#include <algorithm>

#include "tests/twin/reply.hpp"
#include "tests/twin/scripts.hpp"
#include "tests/twin/twin.hpp"

namespace sluice::test {
namespace {

using testing::detail::Configuration;

/// One request of one step.
struct Ask {
  const Operation* row;
  Configuration config;

  [[nodiscard]] RuleRequest request() const { return {config.args, config.table}; }
};

Ask draw(Random& random, const Subject& subject, const Configuration& config) {
  Ask ask{subject.rows[random.below(subject.rows.size())], config};
  draw_call(random, subject, *ask.row, ask.config.args);
  return ask;
}

/// The message of one step, alone or in a plan.
std::vector<std::string> message(const Ask& ask, const std::string& sha, const std::string& key,
                                 const std::string& nonce, bool as_plan) {
  std::vector<std::string> parts{"EVALSHA", sha, "1", key};
  if (as_plan) parts.push_back(nonce);
  parts.push_back((as_plan ? std::string(1, static_cast<char>(ask.row->id)) : nonce) +
                  pack_step(*ask.row, ask.config.args, ask.config.table) + le64(1'000'000));
  return parts;
}

RedisReply send(RedisClient& client, const std::vector<std::string>& parts) {
  return client.command(std::vector<std::string_view>(parts.begin(), parts.end()));
}

std::optional<std::string> compare(const std::string& nonce, Word at, const Verdict& verdict,
                                   const Effects& effects, const RedisReply& reply) {
  return differs(nonce, at, {&verdict, 1}, pack_words(effects.output()), reply);
}

/// A state that some requests in a row have left.
std::string grow(Random& random, const Subject& subject, const Configuration& config, Word& now) {
  std::string raw;
  for (auto left = random.below(30); left > 0; --left) {
    const Ask ask = draw(random, subject, config);
    now = std::min(now + random.between(0, 2'000), word_limit);
    Effects effects;
    const Loaded loaded = load(raw, false, subject.kind(), 0);
    const Verdict verdict = run(*ask.row, loaded.words, ask.request(), now, effects);
    if (verdict.status == Verdict::allowed && effects.changes()) {
      raw = after(raw, subject.kind(), effects);
    }
  }
  return raw;
}

/// Makes a word wrong, of the head or behind it, or tears the last one.
std::string spoil(Random& random, std::string raw, StateKind kind, std::size_t head, bool in_head) {
  if (raw.empty()) raw = encode(kind, {});
  const std::size_t least = 1 + 8 * (head + 1 + random.below(50));
  if (raw.size() < least) raw.resize(least, '\0');
  if (!in_head && random.one_in(3)) {
    raw.resize(raw.size() - 1 - random.below(7));
    return raw;
  }
  const std::array<Word, 4> wrong{-1, INT64_MIN, word_limit + 1, INT64_MAX};
  const std::size_t word =
      in_head ? random.below(head) : head + random.below(raw.size() / 8 - head);
  return raw.replace(1 + 8 * word, 8, le64(wrong[random.below(wrong.size())]));
}

}  // namespace

std::optional<std::string> check_server_time(RedisClient& client, const Scripts& scripts,
                                             std::span<const Subject> subjects, Random& random) {
  const auto shas = load_scripts(client, scripts);
  for (int i = 0; i < 200; ++i) {
    const Subject& subject = subjects[random.below(subjects.size())];
    const bool as_plan = random.one_in(2);
    const Ask ask = draw(random, subject, draw_config(random, subject));
    const std::string key = "{time}:" + std::to_string(random.next());
    const std::string nonce = le64(static_cast<Word>(random.next()));
    auto parts =
        message(ask, shas.at(as_plan ? "plan" : script_name(*ask.row)), key, nonce, as_plan);
    // A client's idea of the time, which must not count.
    parts.push_back(std::to_string(random.between(0, word_limit)));
    const Word before = client.time_us();
    const RedisReply reply = send(client, parts);
    const Word after = client.time_us();
    const Word at = read_le64(reply.text, 8);
    const std::string what = std::string(ask.row->name) + (as_plan ? " in a plan" : "") + ": ";
    if (reply.is_error()) return what + reply.text;
    if (at < before || at > after) {
      return what + "decided at " + std::to_string(at) + ", the server's time was " +
             std::to_string(before) + " to " + std::to_string(after);
    }
    Effects effects;
    const Verdict verdict = run(*ask.row, StateWords{}, ask.request(), at, effects);
    if (auto difference = compare(nonce, at, verdict, effects, reply)) return what + *difference;
  }
  return std::nullopt;
}

std::optional<std::string> check_spoilt(RedisClient& client, const Scripts& scripts,
                                        std::span<const Subject> subjects, std::size_t decisions,
                                        Random& random) {
  const auto shas = load_scripts(client, scripts);
  const auto heads = read_heads(scripts);
  const Verdict corrupt = Verdict::failed(Errc::corrupt_state);
  for (std::size_t i = 0; i < 2 * decisions; ++i) {
    const Subject& subject = subjects[random.below(subjects.size())];
    if (is_cell(subject.kind())) continue;
    const Configuration config = draw_config(random, subject);
    const Ask ask = draw(random, subject, config);
    const std::string name = script_name(*ask.row);
    const std::size_t head = heads.at(name);
    const std::string key = "{spoilt}";
    const std::string nonce = le64(static_cast<Word>(random.next()));
    Word now = random.between(0, word_limit - 1'000'000);
    const std::string raw =
        spoil(random, grow(random, subject, config, now), subject.kind(), head, i % 2 == 0);
    client({"SET", key, raw});
    const bool as_plan = random.one_in(2);
    auto parts = message(ask, shas.at(as_plan ? "plan" : name), key, nonce, as_plan);
    parts.push_back(std::to_string(now));
    const RedisReply reply = send(client, parts);
    const std::string left = client({"GET", key}).text;

    const Loaded loaded = load(raw, false, subject.kind(), head);
    Effects effects;
    Verdict verdict{loaded.status, 0, 0, 0};
    if (loaded.status > 0) {
      verdict = run(*ask.row, loaded.words, ask.request(), now, effects);
    } else {
      for (auto n = output_count(*ask.row, config.table.size()); n > 0; --n) effects.add_output(0);
    }
    const bool writes = verdict.status == Verdict::allowed && effects.changes();
    const auto as_kernel = compare(nonce, now, verdict, effects, reply);
    if (!as_kernel && left == (writes ? after(raw, subject.kind(), effects) : raw)) continue;
    Effects nothing;
    for (auto n = effects.output().size(); n > 0; --n) nothing.add_output(0);
    const auto as_corrupt = compare(nonce, now, corrupt, nothing, reply);
    if (!as_corrupt && left == raw) continue;
    return name + " on the spoilt state " + hex(raw) + ": " +
           as_kernel.value_or("leaves " + hex(left));
  }
  return std::nullopt;
}

}  // namespace sluice::test
