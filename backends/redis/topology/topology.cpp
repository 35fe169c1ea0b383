#include "backends/redis/topology/topology.hpp"

#include "backends/redis/topology/cluster_topology.hpp"
#include "backends/redis/topology/sentinel_topology.hpp"
#include "backends/redis/topology/single_topology.hpp"

namespace sluice::redis_detail {

Topology::Topology(const LinkContext& context, std::uint64_t seed, std::size_t max_links)
    : context_(context), seeds_(seed) {
  links_.reserve(max_links);
}

Link& Topology::add_link() {
  const auto index = static_cast<unsigned>(links_.size());
  links_.push_back(std::make_unique<Link>(context_, *this, seeds_.next(), index));
  count_.store(links_.size(), std::memory_order_release);  // for size()
  return *links_.back();
}

void Topology::stop() noexcept {
  is_stopped_ = true;
  for (const auto& link : links_) link->stop();
}

void Topology::note_ended(Link&) {}

void Topology::note_failing(Link&) {}

bool Topology::is_serving(const Link&) const noexcept { return true; }

bool Topology::is_needed(const Link&) const noexcept { return true; }

/// Outside a cluster, the pipeline ends redirected calls itself.
void Topology::redirect(Link&, CallList&) {}

std::unique_ptr<Topology> make_topology(const LinkContext& context, std::uint64_t seed) {
  if (!context.options.cluster.empty()) return std::make_unique<ClusterTopology>(context, seed);
  if (context.options.sentinel) return std::make_unique<SentinelTopology>(context, seed);
  return std::make_unique<SingleTopology>(context, seed);
}

}  // namespace sluice::redis_detail
