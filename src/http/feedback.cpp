// The members of Feedback.
#include "sluice/http/feedback.hpp"

namespace sluice::http {

std::string_view text(Fate fate) noexcept {
  switch (fate) {
    case Fate::used:
      return "used";
    case Fate::partly:
      return "used, but for items that are not sound";
    case Fate::clamped:
      return "used, at the largest value allowed";
    case Fate::past:
      return "used, its instant lies in the past";
    case Fate::superseded:
      return "another header said it better";
    case Fate::empty:
      return "ignored: empty";
    case Fate::malformed:
      return "ignored: malformed";
    case Fate::negative:
      return "ignored: negative";
    case Fate::no_unit:
      return "ignored: a number whose unit is not known";
    case Fate::too_long:
      return "ignored: too long";
    case Fate::too_many:
      return "ignored: too many limits";
    case Fate::cached:
      return "ignored: the response comes from a cache";
    case Fate::unknown:
      return "ignored: not known";
  }
  return "?";
}

const Window* Feedback::find(sluice::detail::TextArg name) const noexcept {
  const auto found = std::find_if(windows().begin(), windows().end(),
                                  [&](const Window& w) { return w.name == name; });
  return found == windows().end() ? nullptr : &*found;
}

std::optional<Span> Feedback::wait() const noexcept {
  if (retry_after && *retry_after > Span{0}) return retry_after;
  Span longest{0};
  for (const Window& window : windows()) {
    if (window.exhausted() && window.reset) longest = std::max(longest, *window.reset);
  }
  if (longest == Span{0}) return std::nullopt;
  return longest;
}

bool Feedback::add(const Window& window) noexcept {
  if (window_count_ == max_windows) return false;
  windows_[window_count_++] = window;
  return true;
}

bool Feedback::add(Note note) noexcept {
  if (note_count_ == max_notes) return false;
  notes_[note_count_++] = note;
  return true;
}

void Feedback::remove(std::size_t window) noexcept {
  const auto place = windows().begin() + static_cast<std::ptrdiff_t>(window);
  std::move(place + 1, windows().end(), place);
  --window_count_;
}

}  // namespace sluice::http
