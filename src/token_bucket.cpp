// Construction of the token bucket limiter.
#include "sluice/token_bucket.hpp"

#include <stdexcept>

namespace sluice {

TokenBucket::TokenBucket(Store& store, std::string name, Quota quota)
    : store_(&store), name_(std::move(name)), quota_(quota) {
  if (name_.empty() || name_.size() > Key::max_part_bytes) {
    throw std::invalid_argument("a limiter's name must have 1 byte to 1 MiB, got " +
                                std::to_string(name_.size()) + " bytes");
  }
  detail::pack(args_, TokenBucketRule::args(quota_, 1));
}

BoundTokenBucket TokenBucket::at(const Key& key) const {
  const Step bound = take(key);
  if (!is_valid(bound.key)) throw std::system_error(Errc::invalid_key, "TokenBucket::at");
  return {*store_, bound.key, args_};
}

BoundTokenBucket::BoundTokenBucket(Store& store, const Key& key, const Arguments& args)
    : store_(&store),
      bound_(new Bound{std::string(key.tag), std::string(key.name), {}}),
      args_(args) {
  store.bind(Key{bound_->tag, bound_->name}, bound_->binding);
}

}  // namespace sluice
