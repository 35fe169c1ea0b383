// The comparison of kernels and scripts. Requests are pipelined: what must come back is worked out
// when a request is sent, and compared when the replies are read.
#include "tests/twin/twin.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sluice/plan.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/sliding_window_counter.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "tests/twin/reply.hpp"
#include "tests/twin/scripts.hpp"

namespace sluice::test {
namespace {

using testing::detail::log_uniform;

constexpr std::size_t slot_count = 24;
constexpr std::size_t chunk = 200;
constexpr Word max_ahead = 60'000'000;  // of most rules' stamps

bool is_sound(const Verdict& v) {
  const auto is_word = [](Word word) { return word >= 0 && word <= word_limit; };
  const auto is_hint = [](Word word) { return word >= 0 && word <= 2 * word_limit; };
  if (v.status < 0) return v == Verdict{v.status, 0, 0, 0};
  return v.status <= Verdict::allowed && is_word(v.remaining) && is_hint(v.retry_after) &&
         is_hint(v.reset_after);
}

/// What a kernel must never do, whatever it was asked.
std::string find_fault(const Operation& row, const Verdict& verdict, const Effects& effects,
                       std::size_t table_words) {
  if (!is_sound(verdict)) {
    return "the kernel's verdict is none: " + hex(pack_verdicts({&verdict, 1}));
  }
  if (effects.output().size() != output_count(row, table_words)) {
    return "the kernel tells " + std::to_string(effects.output().size()) + " output";
  }
  if (!effects.changes()) return "";
  if (verdict.status != Verdict::allowed) return "the kernel changes a state that it refuses";
  if (!row.writes) return "the kernel changes a state that it only reads";
  const auto has_front = [](const Effects::Fill& fill) { return fill.index == 0; };
  if (std::ranges::none_of(effects.fills(), has_front)) return "the kernel leaves out word 0";
  return "";
}

}  // namespace

Twin::Twin(RedisClient& client, const Scripts& scripts, std::span<const Subject> subjects,
           Random& random)
    : client_(client),
      shas_(load_scripts(client, scripts)),
      heads_(read_heads(scripts)),
      random_(random),
      now_(random.one_in(4) ? word_limit - random.between(0, 10'000'000)
                            : random.between(0, word_limit)) {
  const std::string run = std::to_string(random.next());
  for (std::size_t i = 0; i < slot_count; ++i) {
    slots_.push_back({&subjects[i % subjects.size()], "{" + run + "}:" + std::to_string(i)});
    slots_.back().config = draw_config(random_, *slots_.back().subject);
  }
}

/// Puts a state of extreme values under the key, or garbage, or nothing.
void Twin::tamper(Slot& slot) {
  constexpr std::string_view ttl = "1000000000";
  slot.wrong_type = random_.one_in(12);
  const StateKind kind = slot.subject->kind();
  const std::string raw = draw_state(random_, kind, head_of(heads_, *slot.subject->rows[0]),
                                     slot.raw, slot.config, now_);
  client_.append({"DEL", slot.key});
  if (slot.wrong_type) {
    client_.append({"LPUSH", slot.key, "not a state"});
  } else if (!raw.empty()) {
    client_.append({"SET", slot.key, raw});
  } else {
    client_.append({"PING"});
  }
  client_.append({"PEXPIRE", slot.key, ttl});
  preparations_ += 3;
  slot.raw = slot.wrong_type ? "" : raw;
  slot.ttl_ms = slot.least_ttl_ms = std::stoll(std::string(ttl));
}

/// For a while, only some of the keys are asked, and perhaps time runs on and nobody meddles: else
/// states that need many requests would never come about.
void Twin::draw_mood() {
  for (std::size_t i = 0; i + 1 < slots_.size(); ++i) {
    std::swap(slots_[i], slots_[i + random_.below(slots_.size() - i)]);
  }
  hot_ = 1 + random_.below(random_.one_in(2) ? 4 : slots_.size());
  calm_ = random_.one_in(2);
}

void Twin::move_time() {
  Word to = now_;
  if (calm_ && !random_.one_in(40)) {
    now_ = std::min(now_ + random_.between(0, random_.one_in(8) ? 100'000 : 10), word_limit);
    return;
  }
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
      to -= max_ahead + random_.between(-1, 1);
      break;
    case 5:
      to += random_.between(-2 * max_ahead, 0);
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
      to += 499'999 + random_.between(0, 1);  // a time to live is set anew, or not
      break;
    case 10:
      to += random_.between(0, 2'000'000);
      break;
    default:  // most requests come in bursts
      to += random_.between(0, 1);
  }
  now_ = std::clamp<Word>(to, 0, word_limit);
}

/// Callers ask by what an earlier answer has told them (a version, a time, a level), which lies in
/// the state. What a configuration holds stays as it is.
void Twin::echo(Request& request) {
  const std::string& raw = request.slot->raw;
  const std::size_t words = raw.empty() ? 0 : std::min<std::size_t>(raw.size() / 8, 8);
  const std::size_t count = request.row->argument_count;
  if (words == 0 || raw.size() % 8 != 1 || count < 2) return;
  const std::vector<Word>& record = request.slot->record;
  if (!record.empty() && !random_.one_in(4)) {
    const Arguments& args = request.args;
    const Word amount = random_.one_in(2) ? record[0] : random_.between(0, record[0]);
    if (request.row->id == token_bucket_refund.id ||
        request.row->id == token_bucket_refund_in_full.id) {
      request.args = {args[0], args[1], args[2], args[3], record[0], amount, record[1], record[2]};
      return;
    }
    if (request.row->id == shared_token_bucket_refund.id) {
      request.args = {0, record[0], args[2], amount, record[1], record[2], record[3], record[4]};
      return;
    }
  }
  if (request.row->id == sliding_window_settle.id) {
    const auto loaded = load(raw, false, request.row->kind, 0);
    const auto entry = testing::detail::sliding_window::any_entry(random_, loaded.words);
    request.args[2] = entry.number;
    request.args[3] = entry.time;
    return;
  }
  if (request.row->id == sliding_window_counter_adjust.id && random_.one_in(2)) {
    const Word told = read_le64(raw, 1);  // the start of the window
    const Word back = random_.one_in(2) ? request.slot->config.args[1] : random_.between(-1, 1);
    request.args[4] = std::clamp<Word>(std::clamp<Word>(told, 0, word_limit) - back, 0, word_limit);
    return;
  }
  std::size_t at = 1 + random_.below(count - 1);
  std::size_t word = random_.below(words);
  // Often two that stand side by side, as a level and its time.
  for (auto left = 1 + random_.below(2); left > 0 && at < count && word < words; --left) {
    const Word told = std::clamp<Word>(read_le64(raw, 1 + 8 * word++), 0, word_limit);
    if (request.args[at] != request.slot->config.args[at]) request.args[at] = told;
    ++at;
  }
}

/// `takes`: the kind's first row, and no other.
Twin::Request Twin::draw_request(Slot& slot, bool takes) {
  const bool cell = is_cell(slot.subject->kind());
  const auto rarely = [&](std::uint64_t n) { return random_.one_in(calm_ ? 10 * n : n); };
  if (rarely(cell ? 12 : 60)) slot.config = draw_change(random_, *slot.subject, slot.config);
  if (slot.unusable ? random_.one_in(2) : rarely(cell ? 24 : 40)) tamper(slot);
  const auto& rows = slot.subject->rows;
  // Often the first row, which takes: else the states of kinds with many rows stay empty.
  const Operation* row = rows[takes || random_.one_in(3) ? 0 : random_.below(rows.size())];
  // While nobody meddles a reset is rare: it ends what takes many requests to build.
  if (calm_ && row->name.ends_with(".reset") && !random_.one_in(8)) row = rows[0];
  // Callers of one configuration ask for the same time to live.
  if (slot.keep_ms == 0 || rarely(2)) slot.keep_ms = 1'000'000'000 * random_.between(1, 1'000);
  Request request{row, &slot, slot.config.args, slot.config.table, slot.keep_ms};
  draw_call(random_, *slot.subject, *row, request.args);
  if (random_.one_in(40)) {
    draw_impossible(random_, *slot.subject, *row, request.args);
  } else if (row != rows[0] && random_.one_in(3)) {
    echo(request);
  }
  if (random_.one_in(40)) draw_impossible_table(random_, *slot.subject, request.table);
  return request;
}

std::string Twin::foresee(const Request& request, Pending& pending) {
  const Operation& row = *request.row;
  Slot& slot = *request.slot;
  const auto& table = request.table;
  const Loaded loaded = load(slot.raw, slot.wrong_type, row.kind, head_of(heads_, row));
  for (std::size_t i = 0; i < std::min<std::size_t>(loaded.words.size(), 6); ++i) {
    if (loaded.words[i] <= now_) continue;  // or below zero, in a corrupt state
    const Word ahead = loaded.words[i] - now_;
    ++(ahead > max_ahead ? counts_.stamp_far_ahead : counts_.stamp_ahead);
  }
  Effects effects;
  if (loaded.status < 0) {
    last_ = {loaded.status, 0, 0, 0};
    for (auto i = output_count(row, table.size()); i > 0; --i) effects.add_output(0);
  } else {
    last_ = sluice::run(row, loaded.words, {request.args, table}, now_, effects);
  }
  if (const auto fault = find_fault(row, last_, effects, table.size()); !fault.empty()) {
    pending.fault = std::string(row.name) + ": " + fault;
  }
  const Word corrupt = -static_cast<Word>(Errc::corrupt_state);
  slot.unusable = loaded.status < 0 || last_.status == corrupt;
  ++(last_.status == Verdict::allowed ? counts_.allowed
     : last_.status < 0               ? counts_.failed
                                      : counts_.refused);
  if (last_.status == corrupt) ++counts_.corrupt;
  pending.verdicts.push_back(last_);
  const auto output = effects.output();
  const bool reserves = row.id == token_bucket_reserve.id ||
                        row.id == token_bucket_reserve_some.id ||
                        row.id == shared_token_bucket_reserve.id;
  if (reserves && last_.status == Verdict::allowed && output[0] > 0) {
    slot.record.assign(output.begin(), output.end());
  }
  pending.output += pack_words(output);
  pending.what += std::string(row.name) + "(";
  for (const Word word : request.args) pending.what += std::to_string(word) + " ";
  pending.what += "; table ";
  for (const Word word : table) pending.what += std::to_string(word) + " ";
  pending.what += ") with state " + hex(slot.raw) + "; ";
  return effects.changes() ? after(slot.raw, row.kind, effects) : std::string();
}

/// Makes the change that a plan which allows has made to a cell. Its time to live is set but for
/// one that ends later, but at a time that is one, or that was set to the same length less than
/// half a second ago.
void Twin::settle_cell(const Request& request, std::string next) {
  Slot& slot = *request.slot;
  const Word expires = now_ + 1'000 * request.keep_ms;
  if (slot.raw.size() == 25) {
    const Word before = read_le64(slot.raw, 17);
    if (before > expires - 500'000 && before < 2 * word_limit) {
      ++counts_.ttl_kept;
      slot.raw = std::move(next);
      return;
    }
  }
  next.resize(17);
  slot.raw = next + le64(expires);
  slot.ttl_ms = slot.least_ttl_ms = request.keep_ms;
}

/// Makes the change that a plan which allows has made; empty: none.
void Twin::settle(const Request& request, const std::string& next) {
  if (next.empty()) return;
  ++counts_.writes;
  if (is_cell(request.row->kind)) return settle_cell(request, next);
  Slot& slot = *request.slot;
  // The times to live of variable states never shrink: some other step may count on the longer one.
  const bool longest = !slot.raw.empty();
  const Word ttl = request.keep_ms;
  slot.least_ttl_ms = !longest ? ttl
                      : may_keep_ttl(request.row->kind, slot.raw, next)
                          ? slot.least_ttl_ms
                          : std::max(slot.least_ttl_ms, ttl);
  slot.ttl_ms = longest ? std::max(slot.ttl_ms, ttl) : ttl;
  slot.raw = next;
}

void Twin::decide() {
  if (counts_.decisions % chunk == 0) draw_mood();
  move_time();
  const bool takes = random_.one_in(6);
  const std::size_t steps = takes               ? 2 + random_.below(2)
                            : random_.one_in(3) ? 1 + random_.below(random_.one_in(8) ? 16 : 4)
                                                : 1;
  for (std::size_t i = 0; i < steps; ++i) {
    std::swap(slots_[i], slots_[i + random_.below(std::max(hot_, steps) - i)]);
  }
  std::vector<Request> requests;
  for (std::size_t i = 0; i < steps; ++i) {
    requests.push_back(draw_request(slots_[i], takes));
  }

  Pending pending{.what = ""};
  std::vector<std::string> next;
  for (const Request& request : requests) next.push_back(foresee(request, pending));
  const bool all = std::ranges::all_of(
      pending.verdicts, [](const Verdict& v) { return v.status == Verdict::allowed; });
  for (std::size_t i = 0; all && i < steps; ++i) settle(requests[i], next[i]);
  pending.number = ++counts_.decisions;
  counts_.steps += steps;
  if (steps > 1) ++counts_.plans;
  pending.what += "at " + std::to_string(now_);
  const bool once = random_.one_in(8);
  fingerprint_ = static_cast<Word>(random_.next() >> 12);
  const std::string record =
      once ? requests[0].slot->key + ":" + std::to_string(random_.next()) : "";
  send(requests, pending, once || steps > 1 || random_.one_in(4), record);
  peek(pending, requests);
  if (once) {
    std::string kept;
    if (all) {
      kept = encode(StateKind::idempotency_record, std::array{now_, fingerprint_}) +
             pack_verdicts(pending.verdicts) + pending.output;
    }
    client_.append({"GET", record});
    client_.append({"PTTL", record});
    pending.states.push_back(
        {record, StateKind::idempotency_record, kept, false, 661'000, 661'000});
  }
  const Pending first = pending;
  pending_.push_back(std::move(pending));
  if (once && all) ask_again(requests, first, record);
}

/// Under its id, the plan's answer is the first one, and nothing else is changed.
void Twin::ask_again(const std::vector<Request>& requests, const Pending& first,
                     const std::string& record) {
  ++counts_.once;
  Pending again{.what = "asked again: " + first.what, .number = first.number};
  again.verdicts = first.verdicts;
  again.output = first.output;
  const Word now = now_;
  now_ = std::clamp<Word>(now + random_.between(-max_ahead, 599'999'999), 0, word_limit);
  send(requests, again, true, record);
  again.at = first.at;
  now_ = now;
  peek(again, requests);
  pending_.push_back(std::move(again));
  if (random_.one_in(4)) ask_under_used_id(requests, first, record);
}

/// Another plan under the id is an error, and nothing is changed.
void Twin::ask_under_used_id(const std::vector<Request>& requests, const Pending& first,
                             const std::string& record) {
  Pending other{.what = "another plan under the id of: " + first.what, .number = first.number};
  other.verdicts.assign(first.verdicts.size(), Verdict::failed(Errc::id_reused));
  other.output.assign(first.output.size(), '\0');
  fingerprint_ ^= Word{1} << random_.below(52);
  send(requests, other, true, record);
  peek(other, requests);
  pending_.push_back(std::move(other));
}

void Twin::send(const std::vector<Request>& requests, Pending& pending, bool as_plan,
                const std::string& record) {
  pending.nonce = le64(static_cast<Word>(random_.next()));
  pending.at = now_;
  pending.preparations = std::exchange(preparations_, 0);
  const auto are_all = [&](bool fixed) {
    return std::ranges::all_of(requests,
                               [&](const Request& r) { return is_cell(r.row->kind) == fixed; });
  };
  const auto are_of_one_row = [&] {
    return std::ranges::all_of(requests,
                               [&](const Request& r) { return r.row == requests[0].row; });
  };
  const bool any_plan = random_.one_in(3);
  const std::string script =
      !record.empty() ? "idempotent_plan"
      : !as_plan      ? script_name(*requests[0].row)
      : are_all(true) && !any_plan
          ? are_of_one_row() ? "plan_of_" + script_name(*requests[0].row) : "fixed_plan"
      : are_all(false) && !any_plan ? "variable_plan"
                                    : "plan";
  std::vector<std::string> parts{"EVALSHA", shas_.at(script),
                                 std::to_string(requests.size() + (record.empty() ? 0 : 1))};
  for (const Request& request : requests) parts.push_back(request.slot->key);
  if (!record.empty()) parts.push_back(record);
  if (as_plan) {
    const auto output = static_cast<Word>(pending.output.size() / 8);
    parts.push_back(pending.nonce +
                    (record.empty() ? "" : le64(output).substr(0, 2) + le64(fingerprint_)));
  }
  for (const Request& request : requests) {
    const std::string step = pack_step(*request.row, request.args, request.table);
    parts.push_back((as_plan ? std::string(1, static_cast<char>(request.row->id)) : pending.nonce) +
                    step + le64(request.keep_ms));
  }
  parts.push_back(std::to_string(now_));
  client_.append(std::vector<std::string_view>(parts.begin(), parts.end()));
}

/// Asks for the states as they must be now.
void Twin::peek(Pending& pending, std::span<const Request> requests) {
  for (const Request& request : requests) {
    const Slot& slot = *request.slot;
    client_.append({"GET", slot.key});
    client_.append({"PTTL", slot.key});
    pending.states.push_back(
        {slot.key, request.row->kind, slot.raw, slot.wrong_type, slot.least_ttl_ms, slot.ttl_ms});
  }
}

namespace {

/// `state`: the reply to GET; `ttl`: to PTTL.
std::string find_difference(const auto& expected, const RedisReply& state, Word ttl) {
  if (state.is_error() != expected.wrong_type) return "its type changed";
  if (!state.is_error() && !same_state(state.text, expected.raw, expected.kind)) {
    return "kernel leaves " + hex(expected.raw) + ", twin " + hex(state.text);
  }
  constexpr Word slack_ms = 400'000;  // far more than a run takes
  const bool absent = expected.raw.empty() && !expected.wrong_type;
  if (absent ? ttl == -2 : ttl <= expected.ttl_ms && ttl > expected.least_ttl_ms - slack_ms) {
    return "";
  }
  return "a time to live of " + std::to_string(ttl) + " ms instead of " +
         std::to_string(absent ? -2 : expected.least_ttl_ms) + " to " +
         std::to_string(absent ? -2 : expected.ttl_ms);
}

}  // namespace

std::optional<std::string> Twin::read_all() {
  std::optional<std::string> difference;
  for (const Pending& pending : pending_) {
    for (std::size_t i = 0; i < pending.preparations; ++i) {
      const RedisReply reply = client_.read();
      if (reply.is_error()) throw std::runtime_error("a preparation failed: " + reply.text);
    }
    auto found =
        differs(pending.nonce, pending.at, pending.verdicts, pending.output, client_.read());
    if (!pending.fault.empty()) found = pending.fault;
    for (const Expected& expected : pending.states) {
      const RedisReply state = client_.read();
      const Word ttl = client_.read().integer;
      const std::string in_state = find_difference(expected, state, ttl);
      if (!found && !in_state.empty()) found = expected.key + ": " + in_state;
    }
    if (found && !difference) {
      difference = pending.what + ": " + *found;
      counts_.to_difference = pending.number;
    }
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

}  // namespace sluice::test
