// The calls of the shared bucket.
#include "sluice/shared_bucket.hpp"

#include <array>
#include <stdexcept>

namespace sluice {
namespace {

void throw_if(const std::error_code& error, const char* call) {
  if (error) throw std::system_error(error, call);
}

}  // namespace

SharedBucket::SharedBucket(Store& store, std::string name, Span keep_alive)
    : KeyedLimiter(store, std::move(name)), keep_alive_(keep_alive) {
  if (keep_alive.count() < 1 || keep_alive.count() > SharedBucketRule::max_keep_alive) {
    throw std::invalid_argument("keep_alive must be 1 us to " +
                                std::to_string(SharedBucketRule::max_keep_alive) + " us, got " +
                                std::to_string(keep_alive.count()) + " us");
  }
}

Decision SharedBucket::ask(const Step& step, std::error_code& error) const noexcept {
  std::array<Word, 4> details{};
  Decision decision = decide(store(), step, error, {}, details);
  decision.limit = details[1];
  return decision;
}

SharedBucket::Change SharedBucket::change(const Step& step, std::error_code& error) const noexcept {
  std::array<Word, 2> details{};
  decide(store(), step, error, {}, details);
  return {details[1] != 0, details[0]};
}

Decision SharedBucket::try_acquire(const Key& key, Cost cost) const {
  std::error_code error;
  const Decision decision = try_acquire(key, cost, error);
  throw_if(error, "SharedBucket::try_acquire");
  return decision;
}

Decision SharedBucket::peek(const Key& key, Cost cost) const {
  std::error_code error;
  const Decision decision = peek(key, cost, error);
  throw_if(error, "SharedBucket::peek");
  return decision;
}

SharedBucket::Change SharedBucket::try_set(const Key& key, const Quota& quota,
                                           std::error_code& error) const noexcept {
  return change(set_step(key, quota, Inheritance::as_is, true), error);
}

SharedBucket::Change SharedBucket::try_set(const Key& key, const Quota& quota) const {
  std::error_code error;
  const Change result = try_set(key, quota, error);
  throw_if(error, "SharedBucket::try_set");
  return result;
}

SharedBucket::Change SharedBucket::set(const Key& key, const Quota& quota, Inheritance inheritance,
                                       std::error_code& error) const noexcept {
  return change(set_step(key, quota, inheritance), error);
}

SharedBucket::Change SharedBucket::set(const Key& key, const Quota& quota,
                                       Inheritance inheritance) const {
  std::error_code error;
  const Change result = set(key, quota, inheritance, error);
  throw_if(error, "SharedBucket::set");
  return result;
}

std::optional<SharedBucket::Setting> SharedBucket::read(const Key& key,
                                                        std::error_code& error) const noexcept {
  std::array<Word, 4> details{};
  Decision decision = decide(store(), look(key, 0), error, {}, details);
  if (error == Errc::not_configured) error.clear();
  if (error || details[0] == 0) return std::nullopt;
  decision.limit = details[1];
  return Setting{Quota::per(details[2], Span{details[3]}).burst(details[1]), details[0], decision};
}

std::optional<SharedBucket::Setting> SharedBucket::read(const Key& key) const {
  std::error_code error;
  auto result = read(key, error);
  throw_if(error, "SharedBucket::read");
  return result;
}

}  // namespace sluice
