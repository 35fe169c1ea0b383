// Call: one pending plan, its deadline and its completion. Calls are in intrusive lists, so that
// moving and ending them cannot fail. Not thread-safe, except for the mark of a cancelled call.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "backends/redis/protocol/protocol.hpp"
#include "sluice/extend/conclude.hpp"
#include "sluice/store.hpp"

namespace sluice::redis_detail {

/// The callback of a stop request, on the requesting thread: it marks the call and wakes the I/O
/// thread, which ends marked calls. It holds raw pointers: the registration is removed before the
/// call ends, which waits for a running callback, and every call ends before its client does.
struct StopHook {
  std::atomic<bool>* mark;
  void (*wake)(void* client) noexcept;
  void* client;

  void operator()() const noexcept {
    mark->store(true);
    wake(client);
  }
};

/// A unit of max_in_flight, held until leave() or the destructor.
class InFlight {
 public:
  InFlight() = default;
  /// Takes over a unit that `taken` already counts.
  explicit InFlight(std::atomic<std::size_t>& taken) noexcept : taken_(&taken) {}
  InFlight(InFlight&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
  InFlight& operator=(InFlight&& other) noexcept {
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~InFlight() { leave(); }

  void leave() noexcept {
    if (auto* taken = std::exchange(taken_, nullptr)) taken->fetch_sub(1);
  }

 private:
  std::atomic<std::size_t>* taken_ = nullptr;
};

struct Call;
using CallPtr = std::unique_ptr<Call>;

/// Has one owner at a time: the caller's thread, then the inbox, then the pipeline.
struct Call {
  Completion done{nullptr, nullptr};
  Request request;
  std::uint64_t nonce = 0;
  std::array<AskedStep, Plan::max_steps> asked{};
  std::size_t steps = 0;
  std::size_t output = 0;  // output words of all steps
  Time deadline{};
  unsigned attempts = 0;        // the number of NOSCRIPT errors
  Errc met{};                   // the last temporary error of the server
  unsigned pauses = 0;          // pauses since then
  Time resumes{};               // the end of the current pause
  Errc end{};                   // the error with which it ends
  bool is_alternative = false;  // another plan with its id may be admitted instead
  // In a cluster:
  std::uint16_t slot = 0;
  bool is_asking = false;     // the node is importing the slot: ASKING goes before the request
  unsigned redirections = 0;  // MOVED and ASK replies
  std::string redirection{};  // the last of them
  InFlight in_flight;
  std::atomic<bool> cancelled{false};
  std::optional<StopCallback<StopHook>> on_stop;
  CallPtr next;  // the next call in its list

  /// Releases everything before the completion runs, which may make the next call at once.
  void leave() noexcept {
    on_stop.reset();
    in_flight.leave();
  }
  /// Prepares its memory for a new call. REQUIRES: it has ended.
  void renew() noexcept {
    attempts = 0;
    met = {};
    pauses = 0;
    is_asking = false;
    redirections = 0;
    cancelled.store(false);
  }
};

/// A list of calls, each owned by its predecessor.
class CallList {
 public:
  CallList() = default;
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;
  ~CallList() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Call& front() noexcept { return *head_; }

  void push_back(CallPtr call) noexcept {
    Call* const last = call.get();
    (head_ ? tail_->next : head_) = std::move(call);
    tail_ = last;
    ++size_;
  }
  void push_front(CallPtr call) noexcept {
    if (empty()) return push_back(std::move(call));
    call->next = std::move(head_);
    head_ = std::move(call);
    ++size_;
  }
  /// REQUIRES: !empty().
  CallPtr pop_front() noexcept {
    CallPtr first = std::move(head_);
    head_ = std::move(first->next);
    --size_;
    return first;
  }
  void clear() noexcept {
    while (!empty()) pop_front();
  }
  void swap(CallList& other) noexcept {
    head_.swap(other.head_);
    std::swap(tail_, other.tail_);
    std::swap(size_, other.size_);
  }
  void for_each(const auto& look) const {
    for (const Call* call = head_.get(); call != nullptr; call = call->next.get()) look(*call);
  }

 private:
  CallPtr head_;
  Call* tail_ = nullptr;  // the last one, if any
  std::size_t size_ = 0;
};

}  // namespace sluice::redis_detail
