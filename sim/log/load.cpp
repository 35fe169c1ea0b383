// See load.hpp.
#include "sim/log/load.hpp"

#include <fmt/format.h>

#include "cli/text.hpp"

namespace sluice::tool {

std::uint64_t most_admitted(const Quota& quota, Span length) {
  __extension__ using Wide = unsigned __int128;
  const Wide refilled = Wide{static_cast<std::uint64_t>(length.count())} *
                        static_cast<std::uint64_t>(quota.refill()) /
                        static_cast<std::uint64_t>(quota.period());
  return static_cast<std::uint64_t>(quota.capacity()) + static_cast<std::uint64_t>(refilled);
}

int print_load(const LoadCounts& counts, const Quota& quota) {
  const std::uint64_t most = most_admitted(quota, counts.length());
  const auto per_second = static_cast<std::uint64_t>(quota.refill() * 1'000'000 / quota.period());
  fmt::print("  quota       {} a second, burst {}\n", thousands(per_second),
             thousands(static_cast<std::uint64_t>(quota.capacity())));
  fmt::print("  admitted    {} of at most {} in {} ({})\n", thousands(counts.admitted),
             thousands(most), duration(counts.length()), percent(counts.admitted, most, 2));
  fmt::print("  refused     {}\n", thousands(counts.refused));
  fmt::print("  decisions   {}\n", rate(counts.decisions(), counts.length()));
  if (counts.failed > 0) fmt::print("  failed      {}\n", thousands(counts.failed));
  const bool kept = counts.admitted <= most && counts.decisions() > 0;
  fmt::print("  {}\n", kept ? "The quota was kept." : "THE QUOTA WAS NOT KEPT.");
  return kept && counts.failed == 0 ? 0 : 1;
}

}  // namespace sluice::tool
