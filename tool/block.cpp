// See block.hpp.
#include "tool/block.hpp"

#include <algorithm>
#include <stdexcept>

#include "cli/text.hpp"
#include "sluice/sluice.hpp"
#include "tool/describe_parts.hpp"
#include "tool/unit.hpp"

namespace sluice::tool {
namespace {

struct Wanted {
  Span span;
  const std::function<bool()>& is_agreed;
};

[[noreturn]] void refuse(const Found& found, const std::string& why) {
  throw std::invalid_argument(found.description.kind + " " + why);
}

Key key_of(const Found& found) { return {found.name.tag, std::string_view(found.name.name)}; }

/// One that counts in another unit would block another key.
template <class Limiter>
bool block_by(const Limiter& limiter, const Found& found, const Wanted& wanted) {
  const Key key = key_of(found);
  const Step step = limiter.block_step(key, wanted.span);
  if (found.name.prefix + render(step.key) != found.name.text) {
    refuse(found, "of this unit cannot be blocked from here");
  }
  if (step.operation->check(step.args) != Verdict::allowed) {
    refuse(found, "cannot be blocked for " + duration(wanted.span));
  }
  if (!wanted.is_agreed()) return false;
  (void)limiter.block(key, wanted.span);
  return true;
}

/// The limiter gives up what is further ahead than its own BucketOptions::longest, which may be so
/// short.
void require_short(const Found& found, Span span) {
  if (span <= Span{TokenBucketRule::max_ahead}) return;
  refuse(found, "is blocked for a minute at most; a gate closes for longer");
}

bool block_bucket_of_table(Store& store, const Found& found, Word unit, const Wanted& wanted) {
  if (!found.given.quota) refuse(found, "of a table does not contain its quota: give --quota");
  require_short(found, wanted.span);
  const auto table = std::make_shared<QuotaTable>(LimitList(*found.given.quota, Span{unit}));
  return block_by(TokenBucket(store, found.name.name, table), found, wanted);
}

bool block_bucket(Store& store, const Found& found, const Wanted& wanted) {
  if (const Word unit = table_unit_in(found.name.unit)) {
    return block_bucket_of_table(store, found, unit, wanted);
  }
  const auto unit = bucket_in(found.name.unit);
  if (!unit) refuse(found, "whose key names no rate cannot be blocked");
  const auto quota = bucket_quota(found.name, found.given, unit->quota);
  if (!quota) refuse(found, "does not contain its burst: give --quota or --limit");
  require_short(found, wanted.span);
  BucketOptions options;
  if (unit->interval > 1) options.refill = Refill::per_interval(Span{unit->interval});
  return block_by(TokenBucket(store, found.name.name, *quota, options), found, wanted);
}

bool block_windows(Store& store, const Found& found, const Wanted& wanted) {
  const std::vector<Word> spans = spans_in(found.name.unit);
  if (spans.empty()) refuse(found, "of a shared rate is blocked by the key of the rate");
  const auto limits = window_limits(found.given, spans, found.description.limit.value_or(0));
  if (limits.empty()) refuse(found, "does not contain its limits: give --limit for each window");
  std::vector<WindowLimit> windows;
  for (std::size_t k = 0; k < spans.size(); ++k) windows.push_back({limits[k], Span{spans[k]}});
  return block_by(SlidingWindow(store, found.name.name, std::move(windows)), found, wanted);
}

/// The widest bounds, so that the rate stays as it is; and what is remembered stays as long.
bool block_rate(Store& store, const Found& found, const Wanted& wanted) {
  using namespace std::chrono_literals;
  const Span left = found.expires.value_or(1h);
  return block_by(LearnedRate(store, found.name.name,
                              {.least = Quota::per(1, Span{1'000'000'000'000}),
                               .most = Quota::per_second(1'000'000),
                               .forget = std::clamp<Span>(left, Span{LearnedRateRule::min_forget},
                                                          Span{LearnedRateRule::max_forget})}),
                  found, wanted);
}

/// Where a limit is not stored with a block, any will do.
Word any_limit(const Found& found, Word most) { return only_limit(found.given).value_or(most); }

}  // namespace

bool block(Store& store, const Found& found, Span span, const std::function<bool()>& is_agreed) {
  const Wanted wanted{span, is_agreed};
  const KeyName& name = found.name;
  if (name.is_hashed) refuse(found, "whose key contains a hash is blocked by its limiter alone");
  if (found.given.constant) {
    refuse(found, "that the table always or never admits cannot be blocked: change the table");
  }
  switch (found.state.kind) {
    case StateKind::token_bucket:
      return block_bucket(store, found, wanted);
    case StateKind::sliding_window:
      return block_windows(store, found, wanted);
    case StateKind::learned_rate:
      return block_rate(store, found, wanted);
    case StateKind::shared_token_bucket:
      return block_by(SharedTokenBucket(store, name.name), found, wanted);
    case StateKind::slot_lock:
      return block_by(SlotLock(store, name.name, std::chrono::minutes{1}), found, wanted);
    case StateKind::leases:
      return block_by(ConcurrencyLimiter(store, name.name, any_limit(found, 1)), found, wanted);
    case StateKind::sliding_window_counter: {
      const Word limit = any_limit(found, SlidingWindowCounterRule::max_limit);
      const WindowLimit window{limit, Span{std::max<Word>(1, span_in(name.unit))}};
      return block_by(SlidingWindowCounter(store, name.name, window), found, wanted);
    }
    case StateKind::fixed_window: {
      auto calendar = calendar_in(name.unit);
      if (!calendar) refuse(found, "of this calendar cannot be blocked from here");
      const Word limit = any_limit(found, FixedWindowRule::max_limit);
      return block_by(FixedWindow(store, name.name, limit, std::move(*calendar)), found, wanted);
    }
    case StateKind::shared_sliding_window:
      if (field_text(found.description, "counted") != "together") {
        refuse(found, "for each client has a log for each, and no block for all");
      }
      if (!is_agreed()) return false;
      (void)SharedSlidingWindow(store, name.name).block(key_of(found), span);
      return true;
    case StateKind::gate:
      refuse(found, "is closed: sluice close");
    case StateKind::utilization:
    case StateKind::wait_line:
    case StateKind::idempotency_record:
    case StateKind::constant:
      break;
  }
  refuse(found, "has no block");
}

}  // namespace sluice::tool
