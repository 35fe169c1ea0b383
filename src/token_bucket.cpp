// Construction of the token bucket limiter.
#include "sluice/token_bucket.hpp"

#include <algorithm>
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
      key_(key),
      args_(args),
      bytes_(std::make_unique<char[]>(key.tag.size() + key.name.size())) {
  char* const name = std::ranges::copy(key.tag, bytes_.get()).out;
  std::ranges::copy(key.name, name);
  key_ = Key{{bytes_.get(), key.tag.size()}, {name, key.name.size()}};
  store.bind(key_, binding_);
}

BoundTokenBucket::BoundTokenBucket(BoundTokenBucket&& other) noexcept
    : store_(other.store_),
      binding_(other.binding_),
      key_(other.key_),
      args_(other.args_),
      bytes_(std::move(other.bytes_)) {}

BoundTokenBucket& BoundTokenBucket::operator=(BoundTokenBucket&& other) noexcept {
  store_ = other.store_;
  binding_ = other.binding_;
  key_ = other.key_;
  args_ = other.args_;
  bytes_ = std::move(other.bytes_);
  return *this;
}

}  // namespace sluice
