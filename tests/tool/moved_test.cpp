// A state of any kind is moved integer for integer: its key goes on in the other store.
#include <deque>
#include <map>

#include "tests/tool/moves.hpp"

namespace sluice::test {
namespace {

using testing::detail::ask;
using testing::detail::Subject;

constexpr std::string_view hostile = "\xff {}: %";

/// Some keys of each kind, and plans with ids.
class Program {
 public:
  explicit Program(Random& random) : random_(random) {
    for (const auto& generator : testing::detail::generators()) {
      for (int i = 0; i < 8; ++i) {
        subjects_.emplace_back(std::to_string(subjects_.size()) + std::string(hostile), "limit",
                               generator, generator.any(random));
      }
    }
    for (int i = 0; i < 4; ++i) ids_.push_back(RequestId::draw(random));
  }

  /// One request, asked of each store: the answers must be the same.
  void run(std::initializer_list<Store*> stores) {
    const auto number = random_.below(subjects_.size());
    Subject& subject = subjects_[number];
    const Step step = subject.draw(random_);
    CAPTURE(testing::detail::describe(step));
    Plan plan(step);
    if (random_.one_in(8)) plan = plan.idempotent(ids_[random_.below(ids_.size())]);
    const auto first = ask(**stores.begin(), plan, true);
    for (Store* const store : stores) {
      if (store != *stores.begin()) require_same(first, ask(*store, plan, true));
    }
  }

 private:
  Random& random_;
  std::deque<Subject> subjects_;
  std::vector<RequestId> ids_;
};

void require_every_kind(const TemporaryFile& file, Word now) {
  std::map<StateKind, int> found;
  for (const auto& state : detail::read_states(file.path(), now)) ++found[state.kind];
  for (const StateDescription& each : state_descriptions) {
    if (each.kind == StateKind::constant) continue;  // has no state
    INFO(each.name << " was not moved: does the program write one?");
    REQUIRE(found[each.kind] > 0);
  }
}

}  // namespace

TEST_CASE("a state of each kind goes on where it was moved to", "[moves]") {
  Random random("a state of each kind goes on where it was moved to");
  CAPTURE(random.repeat());
  const auto go_on = [&](Store& redis, VirtualClock& clock) {
    const auto first = make_named_store(clock);
    const auto second = make_named_store(clock);
    const auto third = make_named_store(clock);
    Program program(random);
    const auto run = [&](std::size_t times, std::initializer_list<Store*> stores) {
      for (std::size_t i = 0; i < times; ++i) {
        program.run(stores);
        clock.advance(Span{random.between(0, random.one_in(20) ? 200'000 : 5'000)});
      }
    };
    run(3'000, {first.get()});
    const TemporaryFile file;
    const auto saved = first->save_states(file.path());
    CHECK(saved.unnamed == 0);
    require_every_kind(file, to_word(clock.now()));
    CHECK(import_into(clock, file)["restored"] == saved.saved);
    CHECK(second->load_states(file.path()).restored == saved.saved);
    run(1'500, {first.get(), second.get(), &redis});
    // And back.
    const TemporaryFile back("states-back");
    CHECK(export_from(clock, back)["of_other_prefixes"] == 0);
    CHECK(first->save_states(file.path()).unnamed == 0);
    CHECK(third->load_states(back.path()).restored > 0);
    run(1'500, {first.get(), third.get(), &redis});
  };
  for (std::size_t i = 0; i < scaled(2); ++i) for_each_store(go_on, Stores::redis);
}

}  // namespace sluice::test
