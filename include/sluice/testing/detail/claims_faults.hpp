// Claims about requests that cannot be: each is its own error, names its step, changes nothing.
// Threading: one thread.
#pragma once

#include "sluice/testing/detail/claims_plan.hpp"

namespace sluice::testing::detail {

inline void duplicate_keys_are_errors(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::string tag = context.fresh_tag();
    Subject one(tag, "one", generator, generator.frozen(3));
    Subject two(tag, "two", generator, generator.frozen(3));
    const std::string copy_of_tag = tag;  // the same bytes at another address
    Subject again(copy_of_tag, "one", generator, generator.frozen(3));
    const std::array<Step, 2> pair{one.step(row, 1), again.step(row, 1)};
    require_error(context.store(), pair, Errc::duplicate_key, 1);
    const std::array<Step, 3> apart{one.step(row, 1), two.step(row, 1), again.step(row, 1)};
    require_error(context.store(), apart, Errc::duplicate_key, 2);
    exhaust(context, one, row, 3);
    exhaust(context, two, row, 3);
  });
}

inline void invalid_keys_are_errors(Context& context) {
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::string tag = context.fresh_tag();
    const std::string too_long(Key::max_part_bytes + 1, 'x');
    Subject good(tag, "good", generator, generator.frozen(2));
    for (const auto& [bad_tag, bad_name] : std::vector<std::pair<std::string, std::string>>{
             {"", "name"}, {tag, ""}, {"", ""}, {too_long, "name"}, {tag, too_long}}) {
      Subject bad(bad_tag, bad_name, generator, generator.frozen(2));
      const std::array<Step, 2> steps{good.step(row, 1), bad.step(row, 1)};
      require_error(context.store(), std::span(steps).last(1), Errc::invalid_key, 0);
      require_error(context.store(), steps, Errc::invalid_key, 1);
    }
    exhaust(context, good, row, 2);
  });
}

inline void invalid_sizes_are_errors(Context& context) {
  require_error(context.store(), {}, Errc::invalid_plan, 0);
  for_each_writer([&](const Operation& row, const Generator& generator) {
    const std::string tag = context.fresh_tag();
    Subjects subjects;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < Plan::max_steps * 4; ++i) {
      subjects.emplace_back(tag, std::to_string(i), generator, generator.frozen(1));
      steps.push_back(subjects.back().step(row, 1));
    }
    require_error(context.store(), steps, Errc::invalid_plan, 0);
    require_error(context.store(), std::span(steps).first(Plan::max_steps + 1), Errc::invalid_plan,
                  0);
    for (Subject& subject : subjects) exhaust(context, subject, row, 1);
  });
}

inline void impossible_requests_are_errors(Context& context) {
  for (const Operation* row : operations()) {
    const Generator* generator = find_generator(row->kind);
    if (generator == nullptr) continue;
    const std::string tag = context.fresh_tag();
    Subject good(tag, "good", *generator, generator->frozen(3));
    Subject bad(tag, "bad", *generator, generator->frozen(3));
    for (std::size_t trial = 0;; ++trial) {
      Step step = bad.step(*row, 1);
      if (!generator->impossible(step.args, trial)) break;
      const auto code = static_cast<Errc>(-row->check(step.args));
      require_error(context.store(), {&step, 1}, code, 0);
      const std::array<Step, 2> steps{good.step(*row, 1), step};
      require_error(context.store(), steps, code, 1);
    }
    for_each_writer([&](const Operation& writer, const Generator& of_writer) {
      if (of_writer.kind != generator->kind) return;
      exhaust(context, good, writer, 3);
      exhaust(context, bad, writer, 3);
      good.state = bad.state = {};
      good.name += '+';
      bad.name += '+';
    });
  }
}

}  // namespace sluice::testing::detail
