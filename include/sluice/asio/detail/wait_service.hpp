// The pending waits of an execution context on clocks that the program moves, so that they end with
// the context. Threading: thread-safe.
#pragma once

#include <boost/asio/execution_context.hpp>
#include <mutex>

#include "sluice/asio/detail/wait.hpp"

namespace sluice::asio::detail {

struct ContextLink : Link {};

/// A wait that an execution context owns.
class OwnedWait : public ContextLink, public TimerWait {
 public:
  /// Prevents its completion. False: that has begun. Called under the service's mutex.
  virtual bool withdraw() noexcept = 0;
  /// Frees it, with its handler. REQUIRES: withdrawn.
  virtual void destroy() noexcept = 0;

 protected:
  ~OwnedWait() = default;
};

class WaitService final : public boost::asio::execution_context::service {
 public:
  static inline boost::asio::execution_context::id id;
  explicit WaitService(boost::asio::execution_context& context) : service(context) {}

  /// Guards the lists of the context's waits and timers.
  std::mutex mutex;

  void add(OwnedWait& wait, Link* timer) {
    const std::lock_guard lock(mutex);
    waits_.push_back(static_cast<ContextLink&>(wait));
    if (timer != nullptr) timer->push_back(static_cast<TimerWait&>(wait));
  }
  void remove(OwnedWait& wait) noexcept {
    const std::lock_guard lock(mutex);
    unlink(wait);
  }

 private:
  static void unlink(OwnedWait& wait) noexcept {
    static_cast<ContextLink&>(wait).unlink();
    static_cast<TimerWait&>(wait).unlink();
  }

  void shutdown() override {
    while (OwnedWait* const wait = withdraw()) wait->destroy();
  }
  /// A wait that the context must destroy. Waits that are completing are in its queue.
  OwnedWait* withdraw() noexcept {
    const std::lock_guard lock(mutex);
    for (Link* link = waits_.next(); link != &waits_; link = link->next()) {
      auto& wait = static_cast<OwnedWait&>(static_cast<ContextLink&>(*link));
      if (!wait.withdraw()) continue;
      unlink(wait);
      return &wait;
    }
    return nullptr;
  }

  Link waits_;
};

}  // namespace sluice::asio::detail
