// The sliding window limiter: checking its windows, its calls, and how one waits for it.
#include "sluice/limiters/sliding_window.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sluice/limit_table.hpp"
#include "src/core/text.hpp"
#include "src/core/unit_text.hpp"
#include "src/limiters/keyed_limiter.hpp"
#include "src/limiters/or_throw.hpp"
#include "src/limiters/require_windows.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

using Rule = SlidingWindowRule;
using detail::text_of;

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

std::shared_ptr<const detail::CountedWindows> counted(std::vector<WindowLimit> windows) {
  detail::require_windows(windows);
  return std::make_shared<const detail::CountedWindows>(std::move(windows));
}

/// "1s+1min,grants", in any order of the windows. Older programs log units under "1s+1min".
std::string unit_of(std::vector<WindowLimit> windows) {
  std::sort(windows.begin(), windows.end(),
            [](const WindowLimit& a, const WindowLimit& b) { return a.span < b.span; });
  std::string unit;
  for (const WindowLimit& window : windows) {
    unit += (unit.empty() ? "" : "+") + detail::span_text(window.span);
  }
  return unit + ",grants";
}

struct Beside {
  Word most;
  std::size_t of_rest;  // the window that bounds the rest
};

/// An upper bound of the units that the other windows admit in the span of the k-th, which is
/// divided into windows of the j-th and a rest.
std::optional<Beside> most_beside(std::span<const WindowLimit> windows, std::size_t k,
                                  std::size_t j) {
  const Word whole = windows[k].span / windows[j].span;
  const Span rest = windows[k].span % windows[j].span;
  Word last = rest.count() > 0 ? windows[j].limit : 0;
  std::size_t of_rest = j;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (i == k || windows[i].span < rest || windows[i].limit >= last) continue;
    last = windows[i].limit;
    of_rest = i;
  }
  if (whole > (word_limit - last) / windows[j].limit) return std::nullopt;
  return Beside{whole * windows[j].limit + last, of_rest};
}

/// "window 0 (10 in 5 s)"
std::string text_of(std::span<const WindowLimit> windows, std::size_t k) {
  return "window " + std::to_string(k) + " (" + std::to_string(windows[k].limit) + " in " +
         text_of(windows[k].span) + ")";
}

}  // namespace

void detail::require_windows(const std::vector<WindowLimit>& windows) {
  if (windows.empty() || windows.size() > Rule::max_windows) {
    reject("sliding windows: 1 to " + std::to_string(Rule::max_windows) + " windows, got " +
           std::to_string(windows.size()));
  }
  for (std::size_t k = 0; k < windows.size(); ++k) {
    const auto& [limit, span] = windows[k];
    const std::string which = "sliding windows: window " + std::to_string(k) + ": ";
    if (limit != unlimited && (limit < 0 || limit > Rule::max_limit)) {
      reject(which + "the limit must be 0 to " + std::to_string(Rule::max_limit) +
             ", or unlimited, got " + std::to_string(limit));
    }
    if (span.count() < 1 || span.count() > Rule::max_span) {
      reject(which + "the span must be 1 us to 366 days (" + std::to_string(Rule::max_span) +
             " us), got " + std::to_string(span.count()) + " us");
    }
    const auto twin =
        std::find_if(windows.begin(), windows.end(),
                     [&](const WindowLimit& window) { return window.span == windows[k].span; }) -
        windows.begin();
    if (static_cast<std::size_t>(twin) != k) {
      reject(which + "the span " + text_of(span) + " is that of window " + std::to_string(twin) +
             "; each span may stand once");
    }
  }
}

SlidingWindow::SlidingWindow(const StoreHandle& store, detail::TextArg name,
                             std::vector<WindowLimit> windows)
    : KeyedLimiter(store, name, unit_of(windows)),
      own_(counted(std::move(windows))),
      limit_(own_.get()) {}

SlidingWindow::SlidingWindow(const StoreHandle& store, detail::TextArg name,
                             std::shared_ptr<const LimitTable<WindowLimits>> limits)
    : SlidingWindow(store, name, detail::LimitOf<WindowLimits>(std::move(limits))) {}

SlidingWindow::SlidingWindow(const StoreHandle& store, detail::TextArg name,
                             detail::LimitOf<WindowLimits> limits)
    : KeyedLimiter(store, name, unit_of(limits.everyone()->windows)), limit_(std::move(limits)) {}

Step SlidingWindow::reserve_step(const Key& key, Cost cost, SpanArg max_wait) const noexcept {
  const detail::CountedWindows& counted = *limit_.of(key);
  return step(sliding_window_acquire, key, counted,
              {counted.least, cost.value(), max_wait.count(), counted.longest});
}

Step SlidingWindow::peek_step(const Key& key, Cost cost) const noexcept {
  const detail::CountedWindows& counted = *limit_.of(key);
  return step(sliding_window_peek, key, counted, {counted.least, cost.value(), 0, counted.longest});
}

Step SlidingWindow::settle_step(const Key& key, const Reservation& grant, Cost units,
                                SlidingWindowRule::Change change) const noexcept {
  // Clamped, so that the rule rejects a decision that no store has made.
  const Word ahead = std::clamp(grant.retry_after.count(), Word{-1}, word_limit + 1);
  const detail::CountedWindows& counted = *limit_.of(key);
  const Word keep = counted.longest + Rule::max_ahead + ahead;
  return step(sliding_window_settle, key, counted,
              {counted.least, units.value(), grant.state[0], grant.state[1],
               static_cast<Word>(change), keep});
}

Step SlidingWindow::reset_step(const Key& key) const noexcept {
  const detail::CountedWindows& counted = *limit_.of(key);
  return step(sliding_window_reset, key, counted, {counted.least});
}

Reservation SlidingWindow::reserve(const KeyArg& key, Cost cost, SpanArg max_wait,
                                   std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, cost, max_wait), error);
}

Reservation SlidingWindow::reserve(const KeyArg& key, Cost cost, SpanArg max_wait) const {
  return detail::or_throw(
      {type_name, "reserve"}, [&] { return reserve_step(key, cost, max_wait); },
      [&](auto& error) { return reserve(key, cost, max_wait, error); });
}

std::vector<Word> SlidingWindow::remaining(const KeyArg& key, std::error_code& error) const {
  return detail::run(Verbs::remaining(*this, key), error);
}

std::vector<Word> SlidingWindow::remaining(const KeyArg& key) const {
  return detail::or_throw(
      {type_name, "remaining"}, [&] { return peek_step(key, 0); },
      [&](auto& error) { return remaining(key, error); });
}

Decision SlidingWindow::block(const KeyArg& key, SpanArg span,
                              std::error_code& error) const noexcept {
  return decide(store(), block_step(key, span), error);
}

Decision SlidingWindow::block(const KeyArg& key, SpanArg span) const {
  return decide_as("block", block_step(key, span));
}

std::vector<std::string> SlidingWindow::redundant_windows(std::span<const WindowLimit> windows) {
  std::vector<std::string> texts;
  for (std::size_t k = 0; k < windows.size(); ++k) {
    for (std::size_t j = 0; j < windows.size(); ++j) {
      if (j == k || detail::is_constant(windows[j].limit)) continue;
      const auto beside = most_beside(windows, k, j);
      if (!beside || beside->most > windows[k].limit) continue;
      const bool is_wider = windows[j].span > windows[k].span;
      if (is_wider && beside->of_rest != j) continue;  // said of the other one
      const std::string others =
          beside->of_rest == j
              ? text_of(windows, j) + (is_wider ? ", which is wider, admits" : " admits")
              : text_of(windows, j) + " and " + text_of(windows, beside->of_rest) + " admit";
      texts.push_back(text_of(windows, k) + " can never bind: " + others + " at most " +
                      std::to_string(beside->most) + " in " + text_of(windows[k].span));
      break;
    }
  }
  return texts;
}

Decision SlidingWindow::reward(const KeyArg& key, Cost amount,
                               std::error_code& error) const noexcept {
  return detail::run(Verbs::reward(*this, key, amount), error);
}

Decision SlidingWindow::reward(const KeyArg& key, Cost amount) const {
  return detail::or_throw(
      {type_name, "reward"}, [&] { return reward_step(key, amount); },
      [&](auto& error) { return reward(key, amount, error); });
}

void SlidingWindow::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SlidingWindow::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

struct SlidingWindow::Verbs::Claimed final : detail::ClaimOf<SlidingWindow, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key(), cost()); }
  /// In any `span` from the first grant on there are at most `limit` units.
  Span time_for(Word first, Word further) const noexcept override {
    Span longest{0};
    for (const auto& [limit, span] : limiter().limit_.of(own_key())->windows) {
      if (cost().value() > limit || limit == 0) return Span{0};
      const Word whole = (first + further - 1) / limit;
      longest = std::max(longest, span * std::min(whole, word_limit / span.count()));
    }
    return longest;
  }
};

std::unique_ptr<detail::ClaimedLimit> SlidingWindow::Verbs::claim(const SlidingWindow& windows,
                                                                  const Key& key, Cost cost) {
  return std::make_unique<Claimed>(windows, key, cost);
}

template class KeyedLimiter<SlidingWindow>;

}  // namespace sluice
