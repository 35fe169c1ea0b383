// The subscriptions in one process.
#include "sluice/extend/subscription.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace sluice {

/// Shared with the subscriptions, which may outlive the store.
struct Subscriptions::Table {
  using Seen = std::shared_ptr<const std::function<void()>>;
  std::mutex mutex;
  std::unordered_map<std::string, std::vector<Seen>> channels;
};

class Subscriptions::Entry final : public Subscription {
 public:
  Entry(std::shared_ptr<Table> table, std::string channel, Table::Seen seen)
      : table_(std::move(table)), channel_(std::move(channel)), seen_(std::move(seen)) {}
  ~Entry() override {
    const std::lock_guard lock(table_->mutex);
    const auto found = table_->channels.find(channel_);
    if (found == table_->channels.end()) return;  // it was not added, for lack of memory
    std::erase(found->second, seen_);
    if (found->second.empty()) table_->channels.erase(found);
  }

 private:
  std::shared_ptr<Table> table_;
  std::string channel_;
  Table::Seen seen_;
};

Subscriptions::Subscriptions() : table_(std::make_shared<Table>()) {}
Subscriptions::~Subscriptions() = default;

std::unique_ptr<Subscription> Subscriptions::subscribe(std::string channel,
                                                       std::function<void()> seen) {
  auto shared = std::make_shared<const std::function<void()>>(std::move(seen));
  auto entry = std::make_unique<Entry>(table_, channel, shared);
  const std::lock_guard lock(table_->mutex);
  table_->channels[std::move(channel)].push_back(std::move(shared));
  return entry;
}

void Subscriptions::notify(std::string_view channel) noexcept try {
  std::vector<Table::Seen> all;
  {
    const std::lock_guard lock(table_->mutex);
    if (table_->channels.empty()) return;
    const auto found = table_->channels.find(std::string(channel));
    if (found == table_->channels.end()) return;
    all = found->second;
  }
  for (const Table::Seen& seen : all) (*seen)();
} catch (const std::bad_alloc&) {
  return;  // any wake-up may be lost
}

std::unique_ptr<Subscription> Subscriptions::subscribe_key(const Key& key,
                                                           std::function<void()> seen) noexcept
    try {
  return subscribe(render(key), std::move(seen));
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Subscriptions::notify_key(const Key& key) noexcept try {
  notify(render(key));
} catch (const std::bad_alloc&) {
  return;
}

bool Subscriptions::is_watched(std::string_view channel) const {
  const std::lock_guard lock(table_->mutex);
  return table_->channels.contains(std::string(channel));
}

}  // namespace sluice
