// Copying a plan: one block for the bytes of all its keys, one for the tables of its steps.
#include "sluice/extend/owned_plan.hpp"

#include <algorithm>

namespace sluice {

OwnedPlan::OwnedPlan(const Plan& plan)
    : steps_(plan.steps().begin(), plan.steps().end()), plan_(plan.with_steps(steps_)) {
  std::size_t size = 0;
  std::size_t words = 0;
  for (const Step& step : steps_) {
    size += step.key.tag().size() + step.key.name().size() + step.key.unit().size();
    words += step.table.size();
  }
  if (words != 0) words_ = std::make_unique<Word[]>(words);
  bytes_ = std::make_unique<char[]>(size);
  char* to = bytes_.get();
  Word* to_word = words_.get();
  const auto keep = [&to](std::string_view part) {
    char* const begin = to;
    to = std::copy(part.begin(), part.end(), begin);
    return std::string_view(begin, part.size());
  };
  for (Step& step : steps_) {
    step.key = Key{keep(step.key.tag()), keep(step.key.name())}.with_unit(keep(step.key.unit()));
    step.binding = nullptr;
    Word* const end = std::copy(step.table.begin(), step.table.end(), to_word);
    step.table = {to_word, step.table.size()};
    to_word = end;
  }
}

}  // namespace sluice
