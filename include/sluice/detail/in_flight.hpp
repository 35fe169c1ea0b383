// The calls that a store in front of another has passed on and must hear the end of. Whichever of
// the two stores goes first, each caller is answered once.
// Threading: any member from any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "sluice/detail/uncancelled.hpp"
#include "sluice/store.hpp"

namespace sluice::detail {

/// One such call. A store derives what it must remember of it.
class PassedCall {
 public:
  PassedCall() = default;
  PassedCall(const PassedCall&) = delete;
  PassedCall& operator=(const PassedCall&) = delete;
  virtual ~PassedCall() = default;

  /// Called with the outcome, unless the store in front has gone; delivers to `done`.
  virtual void answered(const Outcome& outcome) noexcept = 0;

  Completion done{nullptr, nullptr};
};

class InFlight {
 public:
  InFlight() : shared_(std::make_shared<Shared>()) {}
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// What is under way ends in Errc::unknown; what is being answered has been when this returns.
  ~InFlight() {
    std::unique_lock lock(shared_->mutex);
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
      shared_->answered.wait(lock, [this] { return shared_->answering == 0; });
    } while (!shared_->calls.empty());  // what was being answered may have passed on another
  }

  /// The completion to pass on, which takes the call. Throws std::bad_alloc, and takes nothing.
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

  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::detail
