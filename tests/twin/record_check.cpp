// Idempotency records that were spoilt. What one means is written down here a second time.
#include <algorithm>

#include "tests/twin/reply.hpp"
#include "tests/twin/single.hpp"
#include "tests/twin/twin.hpp"

namespace sluice::test {
namespace {

constexpr Word kept_for = 600'000'000;
constexpr Word record_ttl_ms = 661'000;

/// A record as it lies in the server, and what is asked for under its id.
struct Record {
  std::string raw;
  bool is_list = false;  // it is a list instead
  std::size_t steps;
  std::size_t output;  // words
  Word fingerprint;
};

Word draw_word(Random& random, Word most) {
  const std::array<Word, 4> edges{0, 1, most - 1, most};
  return random.one_in(2) ? edges[random.below(edges.size())] : random.between(0, most);
}

/// One that says what some plan could have been told.
Record draw_record(Random& random, std::size_t steps, std::size_t output, Word at) {
  Record record{
      .raw = {}, .steps = steps, .output = output, .fingerprint = draw_word(random, word_limit)};
  std::vector<Word> words{at, record.fingerprint};
  for (std::size_t i = 0; i < steps; ++i) {
    words.insert(words.end(),
                 {Verdict::allowed, draw_word(random, word_limit),
                  draw_word(random, 2 * word_limit), draw_word(random, 2 * word_limit)});
  }
  for (std::size_t i = 0; i < output; ++i) words.push_back(draw_word(random, word_limit));
  record.raw = encode(StateKind::idempotency_record, words);
  return record;
}

void spoil(Random& random, Record& record) {
  std::string& raw = record.raw;
  const std::size_t words = raw.size() / 8;
  const auto set = [&](std::size_t word, Word value) { raw.replace(1 + 8 * word, 8, le64(value)); };
  switch (random.below(8)) {
    case 0:
      record.is_list = true;
      break;
    case 1:
      raw.resize(raw.size() - 1 - random.below(7));
      break;
    case 2: {
      const std::array<int, 6> kinds{0, 1, 11, 31, 32, 255};
      raw[0] = static_cast<char>(kinds[random.below(kinds.size())]);
      break;
    }
    case 3:
      raw.resize(1 + 8 * random.below(words));
      break;
    case 4: {
      const std::array<Word, 5> wrong{-1, INT64_MIN, word_limit + 1, 2 * word_limit + 2, INT64_MAX};
      set(random.below(words), wrong[random.below(wrong.size())]);
      break;
    }
    case 5:
      set(2 + 4 * random.below(record.steps), draw_word(random, 2));  // a status
      break;
    case 6:
      record.fingerprint = (record.fingerprint + 1) % word_limit;
      break;
    default:
      raw += le64(-1);  // behind the words that are asked for
  }
}

/// What the record says at `now`: allowed for its answer, refused for nothing, else an error.
Word judge(const Record& record, Word now) {
  const std::string& raw = record.raw;
  const auto failed = [](Errc code) { return -static_cast<Word>(code); };
  const std::size_t words = 2 + 4 * record.steps + record.output;
  if (record.is_list || raw.size() % 8 != 1) return failed(Errc::wrong_type);
  const auto kind = static_cast<unsigned char>(raw[0]);
  if (kind >= 32) return failed(Errc::wrong_type);
  if (kind != static_cast<unsigned char>(StateKind::idempotency_record)) {
    return failed(Errc::wrong_kind);
  }
  if (raw.size() < 17) return failed(Errc::corrupt_state);
  if (read_le64(raw, 1) <= now - kept_for) return Verdict::refused;
  if (read_le64(raw, 9) != record.fingerprint) return failed(Errc::id_reused);
  if (raw.size() < 1 + 8 * words) return failed(Errc::corrupt_state);
  for (std::size_t i = 0; i < words; ++i) {
    const Word word = read_le64(raw, 1 + 8 * i);
    const bool of_verdict = i >= 2 && i < 2 + 4 * record.steps;
    const bool is_hint = of_verdict && i % 4 < 2;
    const bool is_status = of_verdict && i % 4 == 2;
    const Word most = is_hint ? 2 * word_limit : word_limit;
    if (word < 0 || word > most || (is_status && word != Verdict::allowed)) {
      return failed(Errc::corrupt_state);
    }
  }
  return Verdict::allowed;
}

/// What must come back, and what must lie under the record's key.
struct Outcome {
  Word at;
  std::vector<Verdict> verdicts{};
  std::string output{};
  std::string raw;
  bool is_written = false;
};

/// The decision of the plan, each of whose keys is new.
Outcome decide(std::span<const Ask> asks, const Record& record, Word now) {
  Outcome outcome{.at = now, .raw = record.raw};
  for (const Ask& ask : asks) {
    Effects effects;
    outcome.verdicts.push_back(run(*ask.row, StateWords{}, ask.request(), now, effects));
    outcome.output += pack_words(effects.output());
  }
  outcome.is_written = std::ranges::all_of(
      outcome.verdicts, [](const Verdict& v) { return v.status == Verdict::allowed; });
  if (outcome.is_written) {
    outcome.raw = encode(StateKind::idempotency_record, std::array{now, record.fingerprint}) +
                  pack_verdicts(outcome.verdicts) + outcome.output;
  }
  return outcome;
}

Outcome expected(std::span<const Ask> asks, const Record& record, Word now) {
  const Word status = judge(record, now);
  if (status == Verdict::refused) return decide(asks, record, now);
  const std::string& raw = record.raw;
  Outcome outcome{.at = now, .raw = raw};
  if (status < 0) {
    outcome.verdicts.assign(record.steps, Verdict{status, 0, 0, 0});
    outcome.output.assign(8 * record.output, '\0');
    return outcome;
  }
  outcome.at = read_le64(raw, 1);
  for (std::size_t i = 0; i < record.steps; ++i) {
    const std::size_t at = 17 + 32 * i;
    outcome.verdicts.push_back({read_le64(raw, at), read_le64(raw, at + 8), read_le64(raw, at + 16),
                                read_le64(raw, at + 24)});
  }
  outcome.output = raw.substr(17 + 32 * record.steps, 8 * record.output);
  return outcome;
}

std::vector<std::string> message_of_plan(std::span<const Ask> asks, const Record& record,
                                         const std::string& sha, const std::string& nonce,
                                         const std::string& key, Word now) {
  std::vector<std::string> parts{"EVALSHA", sha, std::to_string(asks.size() + 1)};
  for (std::size_t i = 0; i < asks.size(); ++i) parts.push_back(key + std::to_string(i));
  parts.push_back(key);
  parts.push_back(nonce + le64(static_cast<Word>(record.output)).substr(0, 2) +
                  le64(record.fingerprint));
  for (const Ask& ask : asks) {
    parts.push_back(static_cast<char>(ask.row->id) +
                    pack_step(*ask.row, ask.config.args, ask.config.table) + le64(kept_ms));
  }
  parts.push_back(std::to_string(now));
  return parts;
}

/// What lies under the record's key instead of what must.
std::optional<std::string> find_difference(RedisClient& client, const std::string& key,
                                           const Record& record, const Outcome& outcome) {
  const RedisReply left = client({"GET", key});
  if (left.is_error() != record.is_list) return "another type lies there";
  if (!record.is_list && left.text != outcome.raw) return "leaves " + hex(left.text);
  const Word ttl = client({"PTTL", key}).integer;
  constexpr Word slack_ms = 400'000;  // far more than a run takes
  const bool is_right =
      outcome.is_written ? ttl <= record_ttl_ms && ttl > record_ttl_ms - slack_ms : ttl == -1;
  if (!is_right) return "a time to live of " + std::to_string(ttl);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_records(RedisClient& client, const Scripts& scripts,
                                         std::span<const Subject> subjects, std::size_t decisions,
                                         Random& random) {
  const std::string sha = load_scripts(client, scripts).at("idempotent_plan");
  for (std::size_t i = 0; i < decisions; ++i) {
    const std::string key = "{record}:" + std::to_string(random.next());
    std::vector<Ask> asks;
    std::size_t output = 0;
    for (auto steps = 1 + random.below(3); steps > 0; --steps) {
      const Subject& subject = subjects[random.below(subjects.size())];
      asks.push_back(draw_ask(random, subject, draw_config(random, subject)));
      output += output_count(*asks.back().row, asks.back().config.table.size());
    }
    const Word at = random.between(0, word_limit - 2 * kept_for);
    const Word now = at + (random.one_in(2) ? kept_for + random.between(-1, 1)
                                            : random.between(0, 2 * kept_for));
    Record record = draw_record(random, asks.size(), output, at);
    if (!random.one_in(4)) spoil(random, record);
    if (record.is_list) {
      client({"LPUSH", key, "not a record"});
    } else {
      client({"SET", key, record.raw});
    }
    const std::string nonce = le64(static_cast<Word>(random.next()));
    const RedisReply reply = send(client, message_of_plan(asks, record, sha, nonce, key, now));
    const Outcome outcome = expected(asks, record, now);
    auto difference = differs(nonce, outcome.at, outcome.verdicts, outcome.output, reply);
    if (!difference) difference = find_difference(client, key, record, outcome);
    const bool is_new = client({"EXISTS", key + "0"}).integer == 0;
    if (!difference && !outcome.is_written && !is_new) difference = "a step is written";
    if (difference) {
      return "the plan of " + std::string(asks[0].row->name) + " at " + std::to_string(now) +
             " with the record " + hex(record.raw) + ": " + *difference;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::test
