// InFlight: the pending calls that a store has passed to another store. Each caller is answered
// once, whichever of the two stores is destroyed first. Threading: any member from any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "sluice/detail/fork_count.hpp"
#include "sluice/detail/uncancelled.hpp"
#include "sluice/store.hpp"

namespace sluice::detail {

/// One pending call. A store derives its own data from it.
class PassedCall {
 public:
  PassedCall() = default;
  PassedCall(const PassedCall&) = delete;
  PassedCall& operator=(const PassedCall&) = delete;
  virtual ~PassedCall() = default;

  /// Called with the outcome, unless the store in front was destroyed; delivers to `done`.
  virtual void answered(const Outcome& outcome) noexcept = 0;

  Completion done{nullptr, nullptr};
};

class InFlight {
 public:
  InFlight() : shared_(std::make_shared<Shared>()) {}
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// Pending calls fail with Errc::unknown; calls that are being answered have been when this
  /// returns. In a forked child, calls that the parent's threads hold are left alone.
  ~InFlight() {
    std::unique_lock lock(shared_->mutex, std::defer_lock);
    if (home_.is_here()) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return;
    }
    do {
      while (!shared_->calls.empty()) {
        const auto first = shared_->calls.begin();
        Completion done = std::move((*first)->done);
        shared_->calls.erase(first);
        lock.unlock();
        done.fail(Errc::unknown);
        lock.lock();
      }
      const Uncancelled uncancelled;
      shared_->answered.wait(lock, [this] { return shared_->answering == 0 || !home_.is_here(); });
    } while (!shared_->calls.empty());  // a call that was being answered may have passed on another
  }

  /// Takes the call and returns the completion to pass on. Throws std::bad_alloc, and then does not
  /// take it.
  Completion pass(std::unique_ptr<PassedCall>& call) {
    auto ticket = std::make_unique<Ticket>(shared_, nullptr);
    const std::lock_guard lock(shared_->mutex);
    shared_->calls.insert(call.get());
    ticket->call = std::move(call);
    return {&InFlight::complete, ticket.release()};
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->calls.size();
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable answered;
    std::unordered_set<PassedCall*> calls;
    std::size_t answering = 0;
  };
  struct Ticket {
    Ticket(std::shared_ptr<Shared> all, std::unique_ptr<PassedCall> one)
        : shared(std::move(all)), call(std::move(one)) {}
    std::shared_ptr<Shared> shared;
    std::unique_ptr<PassedCall> call;
  };

  static void complete(void* context, const Outcome& outcome) noexcept {
    const std::unique_ptr<Ticket> ticket(static_cast<Ticket*>(context));
    Shared& shared = *ticket->shared;
    {
      const std::lock_guard lock(shared.mutex);
      if (shared.calls.erase(ticket->call.get()) == 0) return;
      ++shared.answering;
    }
    ticket->call->answered(outcome);
    const std::lock_guard lock(shared.mutex);
    --shared.answering;
    shared.answered.notify_all();
  }

  HomeProcess home_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::detail
