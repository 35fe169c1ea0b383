// Random traces, for tests of their text. Threading: one thread.
#pragma once

#include <string>

#include "sluice/testing/trace.hpp"
#include "sluice/virtual_store.hpp"
#include "src/testing/generators.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

inline std::string random_bytes(Random& random, std::size_t most) {
  std::string bytes(random.below(most + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(256));
  return bytes;
}

inline testing::TracedStep random_step(Random& random) {
  const auto rows = operations();
  testing::TracedStep step;
  step.operation = rows[random.below(rows.size())];
  step.tag = random_bytes(random, 9);
  step.name = random_bytes(random, 200);
  for (std::size_t i = 0; i < step.operation->argument_count; ++i) {
    step.args[i] = random.one_in(9) ? random.between(INT64_MIN, INT64_MAX) : random.between(0, 99);
  }
  step.table.resize(random.one_in(2) ? 0 : random.below(max_table_words + 1));
  for (Word& word : step.table) word = random.between(0, word_limit);
  return step;
}

inline Decision random_decision(Random& random, Time asked) {
  const auto any_span = [&] {
    return random.one_in(3) ? Span{0} : Span{testing::detail::log_uniform(random, 52)};
  };
  Decision d;
  d.allowed = random.one_in(2);
  d.source = static_cast<Source>(random.below(6));
  d.step = static_cast<std::uint16_t>(random.below(16));
  d.part = static_cast<std::uint16_t>(random.below(3));
  d.limit = random.between(0, word_limit);
  d.remaining = random.between(-1, word_limit);
  d.retry_after = any_span();
  d.reset_after = any_span();
  d.at = asked + (random.one_in(2) ? any_span() : Span{0});
  return d;
}

inline testing::TracedCall random_call(Random& random, Time asked) {
  testing::TracedCall call;
  call.asked = asked;
  call.answered = asked + Span{random.one_in(2) ? random.between(-9'999'999, 9'999'999) : 0};
  call.caller = random.one_in(2) ? random_bytes(random, 5) : "";
  call.whole = !random.one_in(9);
  if (random.one_in(3)) call.id = RequestId{random.next(), random.next()};
  call.steps.resize(random.one_in(2) ? 1 : random.below(4));
  for (auto& step : call.steps) step = random_step(random);
  if (random.one_in(4) || call.steps.empty()) {
    call.error = std::error_code(static_cast<int>(1 + random.below(60)), error_category());
    if (random.one_in(3)) call.error = std::make_error_code(std::errc::timed_out);
    call.decision.step = static_cast<std::uint16_t>(random.below(3));
    return call;
  }
  call.decision = random_decision(random, asked);
  for (std::size_t i = 0; i < call.steps.size(); ++i) {
    call.each.push_back(random_decision(random, asked));
  }
  if (call.steps.size() == 1 && random.one_in(2)) call.each[0] = call.decision;
  call.output.resize(random.one_in(2) ? 0 : random.below(12));
  for (Word& word : call.output) word = random.between(0, word_limit);
  return call;
}

/// Calls, marks, and times that mostly go on.
inline testing::Trace random_trace(Random& random) {
  testing::Trace trace;
  Time now = VirtualClock::default_start;
  for (std::size_t i = random.below(12); i > 0; --i) {
    now += Span{random.one_in(9) ? -random.between(0, 999'999) : random.between(0, 99'999'999)};
    if (random.one_in(4)) {
      trace.marks.push_back({now, trace.calls.size(), "mark " + std::to_string(i)});
    }
    trace.calls.push_back(random_call(random, now));
  }
  return trace;
}

}  // namespace sluice::test
