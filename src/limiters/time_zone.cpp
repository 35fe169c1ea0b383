// Searching the offset changes of a time zone.
#include "sluice/limiters/time_zone.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/util/quoted.hpp"

namespace sluice {
namespace {

std::string us(Span span) { return std::to_string(span.count()) + " us"; }
std::string us(Time time) { return us(time.time_since_epoch()); }

}  // namespace

TimeZone::TimeZone(detail::TextArg name, std::vector<OffsetChange> changes)
    : name_(name.view()), changes_(std::move(changes)) {
  const auto fail = [this](const std::string& what) {
    throw std::invalid_argument("time zone " + detail::quoted(name_) + ": " + what);
  };
  if (changes_.empty()) fail("there must be 1 change or more, got 0");
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const OffsetChange& change = changes_[i];
    if (change.offset > max_offset || change.offset < -max_offset) {
      fail("an offset must be within 26 hours, got " + us(change.offset));
    }
    if (i > 0 && change.from <= changes_[i - 1].from) {
      fail("changes must rise: number " + std::to_string(i) + " is at " + us(change.from) +
           ", the one before it at " + us(changes_[i - 1].from));
    }
  }
}

std::vector<OffsetChange>::const_iterator TimeZone::change_at(Time time) const noexcept {
  const auto after =
      std::upper_bound(changes_.begin(), changes_.end(), time,
                       [](Time at, const OffsetChange& change) { return at < change.from; });
  return after == changes_.begin() ? after : after - 1;
}

Span TimeZone::offset_at(Time time) const noexcept { return change_at(time)->offset; }

Time TimeZone::first_instant(Word local) const noexcept {
  // Earlier than any instant that could show this local time.
  for (auto change = change_at(to_time(local) - max_offset);; ++change) {
    const auto next = change + 1;
    Time shown = to_time(local) - change->offset;
    if (change != changes_.begin()) shown = std::max(shown, change->from);
    if (next == changes_.end() || shown < next->from) return shown;
  }
}

}  // namespace sluice
