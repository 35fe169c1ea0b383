// Results that depend on all headers.
#include <algorithm>

#include "src/http/reader.hpp"

namespace sluice::http::detail {

void FeedbackReader::settle_retry_after() noexcept {
  if (!seconds_.known && !milliseconds_.known) return;
  // Milliseconds refine seconds that were rounded up from them; otherwise the longer wait counts.
  const bool both = seconds_.known && milliseconds_.known;
  const bool refined = both && seconds_.span >= milliseconds_.span &&
                       seconds_.span - milliseconds_.span < std::chrono::seconds{1};
  const bool finer =
      !seconds_.known || (milliseconds_.known && (refined || milliseconds_.span > seconds_.span));
  out_.retry_after = finer ? milliseconds_.span : seconds_.span;
  if (both) out_.notes()[(finer ? seconds_ : milliseconds_).note].fate = Fate::superseded;
}

void FeedbackReader::settle_windows() noexcept {
  const auto all = out_.windows();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].remaining && all[i].limit && all[i].used) {
      all[i].remaining = std::max(*all[i].limit - *all[i].used, Word{0});
    }
    if (drafts_[i].is_rule) all[i].resource = rule_policy_;
  }
  for (std::size_t i = out_.windows().size(); i-- > 0;) {
    const Window& w = out_.windows()[i];
    if (!w.limit && !w.remaining && !w.used && !w.reset && !w.length && !w.interval) out_.remove(i);
  }
}

void FeedbackReader::join_policies() noexcept {
  for (std::size_t i = 0; i < out_.windows().size(); ++i) {
    const Window& policy = out_.windows()[i];
    if (policy.source != policy_source) continue;
    const auto state =
        std::find_if(out_.windows().begin(), out_.windows().end(), [&](const Window& w) {
          return w.source == state_source && w.name.empty() && w.limit == policy.limit && !w.length;
        });
    if (state == out_.windows().end()) continue;
    state->length = policy.length;
    out_.remove(i--);
  }
}

Feedback FeedbackReader::finish() noexcept {
  settle_retry_after();
  settle_windows();
  join_policies();
  return out_;
}

}  // namespace sluice::http::detail
