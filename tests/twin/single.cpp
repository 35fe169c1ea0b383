#include "tests/twin/single.hpp"

#include "tests/twin/reply.hpp"
#include "tests/twin/wire.hpp"

namespace sluice::test {

using testing::detail::Configuration;

Ask draw_ask(Random& random, const Subject& subject, const Configuration& config) {
  return draw_ask(random, subject, config, *subject.rows[random.below(subject.rows.size())]);
}

Ask draw_ask(Random& random, const Subject& subject, const Configuration& config,
             const Operation& row) {
  Ask ask{&row, config};
  draw_call(random, subject, row, ask.config.args);
  return ask;
}

std::vector<std::string> message_of(const Ask& ask, const std::string& sha, const std::string& key,
                                    const std::string& nonce, bool as_plan) {
  std::vector<std::string> parts{"EVALSHA", sha, "1", key};
  if (as_plan) parts.push_back(nonce);
  parts.push_back((as_plan ? std::string(1, static_cast<char>(ask.row->id)) : nonce) +
                  pack_step(*ask.row, ask.config.args, ask.config.table) + le64(kept_ms));
  return parts;
}

RedisReply send(RedisClient& client, const std::vector<std::string>& parts) {
  return client.command(std::vector<std::string_view>(parts.begin(), parts.end()));
}

SingleTwin::SingleTwin(RedisClient& client, const Scripts& scripts, Random& random)
    : client_(client),
      random_(random),
      shas_(load_scripts(client, scripts)),
      heads_(read_heads(scripts)) {}

std::optional<std::string> SingleTwin::compare(const Ask& ask, const std::string& raw, Word now,
                                               bool or_corrupt) {
  const Operation& row = *ask.row;
  const std::string key = "{single}";
  const std::string nonce = le64(static_cast<Word>(random_.next()));
  client_({"SET", key, raw});
  const bool as_plan = random_.one_in(2);
  auto parts = message_of(ask, shas_.at(as_plan ? "plan" : script_name(row)), key, nonce, as_plan);
  parts.push_back(std::to_string(now));
  const RedisReply reply = send(client_, parts);
  const std::string left = client_({"GET", key}).text;
  const Word ttl = client_({"PTTL", key}).integer;

  const Loaded loaded = load(raw, false, row.kind, head_of(heads_, row));
  Effects effects;
  Verdict verdict{loaded.status, 0, 0, 0};
  if (loaded.status > 0) {
    verdict = run(row, loaded.words, ask.request(), now, effects);
  } else {
    for (auto n = output_count(row, ask.config.table.size()); n > 0; --n) effects.add_output(0);
  }
  const bool writes = verdict.status == Verdict::allowed && effects.changes();
  const std::string next = writes ? after(raw, row.kind, effects) : raw;
  const std::string output = pack_words(effects.output());
  const auto as_kernel = differs(nonce, now, {&verdict, 1}, output, reply);
  constexpr Word none = -1;
  constexpr Word slack_ms = 400'000;  // far more than a run takes
  const bool has_none = ttl == none && (!writes || may_keep_ttl(row.kind, raw, next));
  const bool is_kept = has_none || (writes && ttl > kept_ms - slack_ms && ttl <= kept_ms);
  if (!as_kernel && left == next && is_kept) return std::nullopt;
  const Verdict corrupt = Verdict::failed(Errc::corrupt_state);
  const std::string zeros(output.size(), '\0');
  if (or_corrupt && left == raw && ttl == none &&
      !differs(nonce, now, {&corrupt, 1}, zeros, reply)) {
    return std::nullopt;
  }
  std::string what = as_kernel.value_or(is_kept ? "" : "a time to live of " + std::to_string(ttl));
  if (what.empty()) what = "leaves " + hex(left);
  return std::string(row.name) + " on the state " + hex(raw.substr(0, 1'000)) + ": " + what;
}

}  // namespace sluice::test
