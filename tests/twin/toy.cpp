// The queue keeps a pair of words for each unit, moves its first ones around at every take, and
// tells a detail per window. The tally adds up what it is given.
#include "tests/twin/toy.hpp"

#include <algorithm>

namespace sluice::test {
namespace {

using testing::detail::Bound;
using testing::detail::Configuration;
using testing::detail::Generator;

constexpr auto queue_kind = StateKind{31};
constexpr std::size_t first_pair = 7;

void tell(const RuleRequest& request, Word first, Effects& effects) {
  effects.add_output(first);
  for (std::size_t i = 0; i + 1 < request.table.size(); i += 2) {
    effects.add_output(request.table[i] + request.table[i + 1]);
  }
}

Word check_queue(const Arguments& args) noexcept {
  if (args[1] < 0) return -static_cast<Word>(Errc::invalid_cost);
  if (args[1] > args[0]) return -static_cast<Word>(Errc::cost_exceeds_capacity);
  return Verdict::allowed;
}

Verdict queue(const StateView& state, const RuleRequest& request, Word now, Effects& effects,
              bool spends) {
  const Word limit = request.args[0];
  const Word cost = request.args[1];
  if (const Word status = check_queue(request.args); status < 0) return {status, 0, 0, 0};
  Word count = state[0];
  if (count > 1'000) {
    state.call_corrupt();
    count = 0;
  }
  const Word stamp = state[1] > now + 60'000'000 ? now : std::max(state[1], now);
  const auto pair = [](Word i) { return first_pair + 2 * static_cast<std::size_t>(i); };
  const Word last = count > 0 ? state[pair(count - 1)] : 0;
  Word ends = 0;
  if (count > 0) {
    const Word behind = state[pair(count - 1) + 1] + state[pair(count)];
    ends = (state[first_pair] + state[first_pair + 1]) % 1'000 + behind % 1'000;
  }
  tell(request, ends, effects);
  if (count + cost > limit) {
    return {Verdict::refused, std::max(limit - count, Word{0}), stamp - now + 1, last % 1'000};
  }
  if (spends && cost > 0) {
    if (count > 2) effects.rotate(first_pair, first_pair + 2, pair(3));
    effects.put(0, count + cost);
    effects.put(1, stamp);
    effects.put(2, last);
    effects.fill(pair(count), 2 * static_cast<std::size_t>(cost), now % 1'000);
  }
  return {Verdict::allowed, limit - count - (spends ? cost : 0), 0, last % 1'000};
}

Verdict acquire(const StateView& state, const RuleRequest& request, Word now,
                Effects& effects) noexcept {
  return queue(state, request, now, effects, true);
}
Verdict peek(const StateView& state, const RuleRequest& request, Word now,
             Effects& effects) noexcept {
  return queue(state, request, now, effects, false);
}

Verdict add(const StateView& state, const RuleRequest& request, Word now,
            Effects& effects) noexcept {
  Word sum = 0;
  for (const Word word : request.args) sum += word % 1'024;
  const Word first = state[0] + sum;
  effects.add_output(sum);
  effects.add_output(first % 97);
  if (first > 1'000) return {Verdict::refused, first % 10, 1, 0};
  effects.put(0, first);
  effects.put(1, std::max(now, state[1]));
  return {Verdict::allowed, 1'000 - first, sum, 0};
}

Word check_nothing(const Arguments&) noexcept { return Verdict::allowed; }
Word keep_long(const Arguments&) noexcept { return 1'000'000; }

constinit const Operation queue_take{
    .name = "toy_queue.acquire",
    .id = 254,
    .kind = queue_kind,
    .writes = true,
    .argument_count = 2,
    .check = check_queue,
    .ttl = keep_long,
    .decide = acquire,
    .output = 1,
    .tells_windows = true,
};
constinit const Operation queue_look{
    .name = "toy_queue.peek",
    .id = 255,
    .kind = queue_kind,
    .writes = false,
    .argument_count = 2,
    .check = check_queue,
    .ttl = keep_long,
    .decide = peek,
    .output = 1,
    .tells_windows = true,
};
constinit const Operation tally_add{
    .name = "toy_tally.add",
    .id = 253,
    .kind = StateKind::gate,
    .writes = true,
    .argument_count = 8,
    .check = check_nothing,
    .ttl = keep_long,
    .decide = add,
    .output = 2,
};

Configuration any_queue(Rng& rng) {
  Configuration config;
  config.args[0] = static_cast<Word>(rng.below(40));
  config.table.resize(2 * rng.below(5));
  for (Word& word : config.table) word = static_cast<Word>(rng.below(1'000'000));
  return config;
}
void draw_queue(Rng& rng, const Operation& /*row*/, Arguments& args) {
  args[1] = static_cast<Word>(rng.below(std::uint64_t(std::min<Word>(args[0], 4)) + 1));
}
std::vector<Bound> bounds_of_queue(const Operation& /*row*/, const Arguments& call) {
  return {{1, 0, call[0], Errc::invalid_cost, Errc::cost_exceeds_capacity}};
}
Configuration any_tally(Rng& rng) {
  Configuration config;
  for (Word& word : config.args) word = static_cast<Word>(rng.below(20));
  return config;
}
void draw_tally(Rng& rng, const Operation& /*row*/, Arguments& args) {
  args[rng.below(max_arguments)] = static_cast<Word>(rng.below(40));
}
std::vector<Bound> no_bounds(const Operation&, const Arguments&) { return {}; }

constexpr Generator queue_generator{queue_kind, any_queue, draw_queue, bounds_of_queue, nullptr};
constexpr Generator tally_generator{StateKind::gate, any_tally, draw_tally, no_bounds, nullptr};

constexpr std::string_view queue_text = R"(
--@ piece toy_queue
--@ use sliding_window_words
  if cost < 0 then return Errc.invalid_cost end
  if cost > limit then return Errc.cost_exceeds_capacity end
  local count = head[1]
  if count > 1000 then
    is_corrupt = true
    count = 0
  end
  local stamp = head[2]
  if stamp > now + 60000000 or stamp < now then stamp = now end
  local last, ends = 0, 0
  if count > 0 then
    last = word(5 + 2 * count)
    local a, b = words(7, 2)
    local c, d = words(6 + 2 * count, 2)
    ends = (a + b) % 1000 + (c + d) % 1000
  end
  local output = struct.pack('<i8', ends)
  for i = 1, #table, 2 do output = output .. struct.pack('<i8', table[i] + table[i + 1]) end
  if count + cost > limit then
    local free = limit - count
    if free < 0 then free = 0 end
    return 0, free, stamp - now + 1, last % 1000, output
  end
  if takes and cost > 0 then
    if count > 2 then
      local pairs = bytes(7, 6)
      put(7, string.sub(pairs, 17) .. string.sub(pairs, 1, 16))
    end
    put(0, struct.pack('<i8i8i8', count + cost, stamp, last))
    put(7 + 2 * count, string.rep(struct.pack('<i8', now % 1000), 2 * cost))
    return 1, limit - count - cost, 0, last % 1000, output
  end
  return 1, limit - count, 0, last % 1000, output

--@ operation toy_queue_acquire(head[3] | limit, cost)
  local takes = true
--@ use toy_queue

--@ operation toy_queue_peek(head[3] | limit, cost)
  local takes = false
--@ use toy_queue
)";

constexpr std::string_view tally_text = R"(
--@ operation toy_tally_add(first, second | a, b, c, d, e, f, g, h)
  local sum = 0
  for _, word in ipairs({a, b, c, d, e, f, g, h}) do sum = sum + word % 1024 end
  first = first + sum
  local output = struct.pack('<i8i8', sum, first % 97)
  if first > 1000 then return 0, first % 10, 1, 0, nil, nil, output end
  if now > second then second = now end
  return 1, 1000 - first, sum, 0, first, second, output
)";

}  // namespace

std::span<const Subject> toy_subjects() {
  static const std::array<Subject, 2> subjects{
      {{&queue_generator, {&queue_take, &queue_look}}, {&tally_generator, {&tally_add}}}};
  return subjects;
}

std::span<const Operation* const> toy_operations() {
  static constexpr std::array all{&queue_take, &queue_look, &tally_add};
  return all;
}

void add_toys(LuaFiles& files) {
  files["rules/toy_queue.lua"] = queue_text;
  files["rules/toy_tally.lua"] = tally_text;
}

}  // namespace sluice::test
