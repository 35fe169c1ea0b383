// Fixed windows whose limit, width and calendar change under one name, old and new callers taking
// turns: what any interval holds, by brute force over histories of the kernel.
// Threading: single-threaded.
#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/rules/fixed_window.hpp"
#include "tests/catch.hpp"
#include "tests/core/kernel.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using Rule = FixedWindowRule;
__extension__ typedef __int128 Wide;

constexpr Word begin_of_time = 100'000;

/// One configuration, and the fastest that it lets units pass: `limit` in `narrowest`.
struct Windows {
  Word limit;
  Word narrowest;
  Word widest;
  Arguments args;

  [[nodiscard]] Ask take(Word cost) const {
    Ask ask{&fixed_window_take, args};
    ask.args[7] = cost;
    return ask;
  }
};

Windows draw_windows(Random& random, Word unit) {
  const Word limit = random.between(1, random.one_in(2) ? 3 : 30);
  if (random.one_in(4)) {  // a calendar of one, two or four windows around the history
    std::array<Word, Rule::boundaries> b{};
    const Word width = unit * random.between(8, 60);
    for (std::size_t i = 0; i < b.size(); ++i) {
      b[i] = begin_of_time - random.between(0, width) + static_cast<Word>(i) * width * 4;
    }
    b[0] = std::max<Word>(0, begin_of_time - 4 * width);
    b[4] = word_limit;
    Windows windows{limit, b[2] - b[1], b[2] - b[1], {limit, 0, b[0], b[1], b[2], b[3], b[4], 0}};
    for (std::size_t i = 0; i + 2 < b.size(); ++i) {
      windows.narrowest = std::min(windows.narrowest, b[i + 1] - b[i]);
      windows.widest = std::max(windows.widest, b[i + 1] - b[i]);
    }
    return windows;
  }
  const Word width = unit * (random.one_in(2) ? random.between(8, 20) : random.between(8, 400));
  return {limit, width, width, {limit, width, random.between(0, width - 1)}};
}

/// True if some window of one may pass for a window of the other.
bool alike(const Windows& a, const Windows& b) {
  return a.args[1] != b.args[1] && a.narrowest * 4 <= b.widest * 5 &&
         b.narrowest * 4 <= a.widest * 5;
}

struct Grant {
  Word at;
  Word cost;
  Word pauses;  // before it: stretches after which a key is forgotten, and blocks
};

/// An interval that holds more than what the fastest admits in it and the largest limit, once for
/// each configuration, pause and block: where it begins, what it holds, how long it is.
std::optional<Grant> breach(const std::vector<Grant>& grants, const std::vector<Windows>& all) {
  Word limit = 0;
  const Windows* fastest = &all.front();
  for (const Windows& windows : all) {
    limit = std::max(limit, windows.limit);
    if (Wide{windows.limit} * fastest->narrowest > Wide{fastest->limit} * windows.narrowest) {
      fastest = &windows;
    }
  }
  for (std::size_t first = 0; first < grants.size(); ++first) {
    Word sum = 0;
    for (std::size_t last = first; last < grants.size(); ++last) {
      sum += grants[last].cost;
      const Word bursts =
          static_cast<Word>(all.size()) + grants[last].pauses - grants[first].pauses;
      const Word length = grants[last].at - grants[first].at;
      if (Wide{sum - bursts * limit} * fastest->narrowest > Wide{fastest->limit} * length) {
        return Grant{grants[first].at, sum, length};
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE(
    "while old and new windows take turns, no interval holds more than the larger limit twice "
    "and what the faster of them admits",
    "[core][fixed_window][property]") {
  Random random(
      "while old and new windows take turns, no interval holds more than the larger "
      "limit twice and what the faster of them admits");
  CAPTURE(random.repeat());
  std::size_t foreign = 0;
  std::size_t hinted = 0;
  std::size_t blocked = 0;
  for (std::size_t history = 0; history < scaled(3000); ++history) {
    const Word unit = random.one_in(2) ? 1 : random.between(1, 1000);
    std::vector<Windows> all{draw_windows(random, unit), draw_windows(random, unit)};
    if (random.one_in(4)) {  // the same windows under another limit
      all[1] = all[0];
      all[1].args[0] = all[1].limit = random.between(1, 30);
    }
    if (random.one_in(4)) all.push_back(draw_windows(random, unit));
    const bool confused = std::ranges::any_of(all, [&](const Windows& a) {
      return std::ranges::any_of(all, [&](const Windows& b) { return alike(a, b); });
    });
    if (confused) continue;
    const bool once = random.one_in(3);  // one change, and no way back
    const bool blocks = random.one_in(3);
    const std::size_t turns = 1 + random.below(20);
    Kernel kernel(0);
    std::vector<Grant> grants;
    Word now = begin_of_time;
    Word pauses = 0;
    std::size_t who = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < 80; ++i) {
      if (random.one_in(4)) now += random.between(0, 3 * unit);
      if (random.one_in(6)) now += random.between(0, all[who].widest);
      if (once) {
        who = i * all.size() / 80;
      } else if (random.below(turns) == 0) {
        who = random.below(all.size());
      }
      const Windows& windows = all[who];
      if (blocks && random.one_in(10)) {
        Ask block = windows.take(random.between(1, random.one_in(2) ? 3 * unit : windows.widest));
        block.row = &fixed_window_block;
        const Word span = block.args[7];
        const Verdict until = kernel.ask(Span{now}, block);
        REQUIRE(until.status == Verdict::allowed);
        Kernel copy(0, kernel.words());
        CHECK(copy.ask(Span{now + span - 1}, windows.take(1)).status == Verdict::refused);
        ++pauses;
        ++blocked;
      }
      Word cost = random.one_in(2) ? 1 : random.between(1, windows.limit);
      Word at = now;
      Verdict verdict{};
      for (int tries = 0; tries < 3; ++tries) {
        // What the key remembers at most: until as long again as the widest window.
        const StateWords words = kernel.words();
        Kernel copy(0, words);
        verdict = copy.ask(Span{at}, windows.take(cost));
        REQUIRE(verdict.status >= 0);
        if (verdict.status == Verdict::allowed) {
          const Word code = words[1] % Rule::codes;
          const Word wide = (((8 + code % 8) << (code / 8)) + 7) / 8;  // FixedWindowRule::codes
          if (who != last && words[0] > at) ++foreign;
          last = who;
          if (!once && words[0] > 0 && at >= words[0] + wide) ++pauses;
          (void)kernel.ask(Span{at}, windows.take(cost));
          grants.push_back({at, cost, pauses});
          break;
        }
        // The hint is exact. The last window of a calendar has no end.
        const Word hint = at + verdict.retry_after;
        REQUIRE(verdict.retry_after > 0);
        if (hint >= word_limit) break;
        for (const Word early : {hint - 1, random.between(at, hint - 1)}) {
          CHECK(copy.ask(Span{early}, windows.take(cost)).status == Verdict::refused);
        }
        CHECK(copy.ask(Span{hint}, windows.take(cost)).status == Verdict::allowed);
        ++hinted;
        if (verdict.remaining > 0 && random.one_in(2)) {
          cost = verdict.remaining;
        } else if (random.one_in(3)) {
          now = at = hint;
        } else {
          break;
        }
      }
    }
    const auto found = breach(grants, all);
    INFO("history " << history << ": " << all[0].limit << " in " << all[0].narrowest << ", then "
                    << all[1].limit << " in " << all[1].narrowest);
    CAPTURE(found ? found->at : 0, found ? found->cost : 0, found ? found->pauses : 0);
    REQUIRE_FALSE(found);
  }
  CHECK(foreign > scaled(1000));
  CHECK(hinted > scaled(1000));
  CHECK(blocked > scaled(1000));
}
