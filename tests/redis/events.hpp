// What a store tells of its connections. Threading: told by the store's thread, read by any.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "sluice/redis/redis_store.hpp"

namespace sluice::test {

class Events {
 public:
  /// The function for RedisOptions::on_event. REQUIRES: this outlives the store.
  std::function<void(const RedisEvent&)> listener() {
    return [this](const RedisEvent& event) {
      const std::lock_guard lock(mutex_);
      all_.push_back(event);
    };
  }

  [[nodiscard]] std::vector<RedisEvent> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  /// How many are of this kind, and of this step, with `part` in their text.
  [[nodiscard]] std::size_t count(RedisEvent::Kind kind, RedisStep step,
                                  std::string_view part = "") const {
    std::size_t result = 0;
    for (const RedisEvent& event : all()) {
      const bool counts =
          event.kind == kind && event.step == step && event.text().find(part) != std::string::npos;
      result += counts ? 1U : 0U;
    }
    return result;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<RedisEvent> all_;
};

}  // namespace sluice::test
