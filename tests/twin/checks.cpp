// Two shorter comparisons: on the server's own clock, and on spoilt states.
#include <algorithm>

#include "tests/twin/reply.hpp"
#include "tests/twin/single.hpp"
#include "tests/twin/twin.hpp"

namespace sluice::test {
namespace {

using testing::detail::Configuration;
using testing::detail::log_uniform;

/// Often the kind's first row, which takes: of others, few lead to a fast path.
Ask draw_often_taking(Random& random, const Subject& subject, const Configuration& config,
                      bool takes) {
  return takes ? draw_ask(random, subject, config, *subject.rows[0])
               : draw_ask(random, subject, config);
}

/// A state that some requests in a row have left.
std::string grow(Random& random, const Subject& subject, const Configuration& config, Word& now) {
  std::string raw;
  const bool takes = random.one_in(2);
  for (auto left = random.below(30); left > 0; --left) {
    const Ask ask = draw_often_taking(random, subject, config, takes);
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

/// Makes a word wrong, of the head or behind it, or tears one behind it.
std::string spoil(Random& random, std::string raw, StateKind kind, std::size_t head, bool in_head) {
  if (raw.empty()) raw = encode(kind, {});
  const std::size_t behind = 1 + 8 * head;
  const std::size_t least = behind + 8 * (1 + random.below(random.one_in(2) ? 1 : 50));
  if (raw.size() < least) raw.resize(least, '\0');
  if (!in_head && random.one_in(2)) {
    const std::size_t words =
        random.one_in(3) ? raw.size() / 8 - head : 1 + random.below(raw.size() / 8 - head);
    raw.resize(behind + 8 * words - 1 - random.below(random.one_in(2) ? 1 : 7));
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
    const Ask ask = draw_ask(random, subject, draw_config(random, subject));
    const std::string key = "{time}:" + std::to_string(random.next());
    const std::string nonce = le64(static_cast<Word>(random.next()));
    auto parts =
        message_of(ask, shas.at(as_plan ? "plan" : script_name(*ask.row)), key, nonce, as_plan);
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
    if (auto difference = differs(nonce, at, {&verdict, 1}, pack_words(effects.output()), reply)) {
      return what + *difference;
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_spoilt(RedisClient& client, const Scripts& scripts,
                                        std::span<const Subject> subjects, std::size_t decisions,
                                        Random& random) {
  SingleTwin twin(client, scripts, random);
  for (std::size_t i = 0; i < 2 * decisions; ++i) {
    const Subject& subject = subjects[random.below(subjects.size())];
    if (is_cell(subject.kind())) continue;
    const Configuration config = draw_config(random, subject);
    const Ask ask = draw_often_taking(random, subject, config, random.one_in(2));
    const std::size_t head = head_of(twin.heads(), *ask.row);
    const Word begin = random.between(0, word_limit - 1'000'000);
    Word now = begin;
    const std::string grown = grow(random, subject, config, now);
    if (random.one_in(2)) {
      // Some of what is counted has left by then.
      const Word span = config.table.empty() ? log_uniform(random, 30) : config.table[1];
      const Word edge = begin + random.between(0, now - begin);
      now = std::clamp(edge + span, now, word_limit);
    }
    const std::string raw = spoil(random, grown, subject.kind(), head, i % 2 == 0);
    if (auto difference = twin.compare(ask, raw, now, true)) return difference;
  }
  return std::nullopt;
}

}  // namespace sluice::test
