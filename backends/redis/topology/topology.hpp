// Topology: which servers a store has, and which of them decides a key.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/redis/connection/link.hpp"

namespace sluice::redis_detail {

/// One link a server. Links are never destroyed before their store, so that callers need no lock: a
/// link whose server has left the cluster is given to the next new server. Members under "any
/// thread" are thread-safe; all others belong to the I/O thread.
class Topology : public LinkOwner {
 public:
  /// REQUIRES: what the context refers to outlives it.
  Topology(const LinkContext& context, std::uint64_t seed, std::size_t max_links);

  // Any thread.

  /// The link of the server that has the slot, as far as it is known.
  [[nodiscard]] virtual Link& link_of(std::uint16_t slot) noexcept = 0;
  [[nodiscard]] std::size_t size() const noexcept {
    return count_.load(std::memory_order_acquire);  // what add_link() has released
  }
  /// REQUIRES: index < size().
  [[nodiscard]] Link& link(std::size_t index) noexcept { return *links_[index]; }
  [[nodiscard]] const Link& link(std::size_t index) const noexcept { return *links_[index]; }
  /// Whether the link's server has keys.
  [[nodiscard]] virtual bool is_serving(const Link& link) const noexcept;

  // The I/O thread.

  /// Connects; again after an exception.
  virtual void start() = 0;
  /// Connects to a server that has the channels of keys.
  virtual boost::asio::awaitable<bool> connect_subscriber(Connection& connection) = 0;
  /// Ends all links and calls.
  virtual void stop() noexcept;

  void note_ended(Link& link) override;
  void note_failing(Link& link) override;
  [[nodiscard]] bool is_needed(const Link& link) const noexcept override;
  void redirect(Link& from, CallList& calls) override;

 protected:
  /// REQUIRES: size() < max_links.
  Link& add_link();
  [[nodiscard]] const LinkContext& context() const noexcept { return context_; }
  [[nodiscard]] bool is_stopped() const noexcept { return is_stopped_; }

 private:
  const LinkContext context_;
  SeededRng seeds_;
  std::vector<std::unique_ptr<Link>> links_;  // never reallocated
  std::atomic<std::size_t> count_{0};
  bool is_stopped_ = false;
};

/// The topology of the options: one server, Sentinels, or a cluster.
[[nodiscard]] std::unique_ptr<Topology> make_topology(const LinkContext& context,
                                                      std::uint64_t seed);

}  // namespace sluice::redis_detail
