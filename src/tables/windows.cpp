// Tables of windows.
#include "sluice/rules/sliding_window.hpp"
#include "src/tables/limit_table.hpp"

namespace sluice {

detail::CountedWindows::CountedWindows(WindowLimits the_windows) : windows(std::move(the_windows)) {
  for (const auto& [limit, span] : windows) {
    least = std::min(least, limit);
    longest = std::max(longest, span.count());
    words.push_back(std::min(limit, SlidingWindowRule::max_limit));  // as large as can be
    words.push_back(span.count());
  }
}

template class LimitList<WindowLimits>;
template std::vector<std::string> difference(const LimitList<WindowLimits>&,
                                             const LimitList<WindowLimits>&);
template class LimitTable<WindowLimits>;
template class detail::LimitOf<WindowLimits>;

}  // namespace sluice
