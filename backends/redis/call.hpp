// One plan on its way: what was asked, until when, and who waits for the answer. Calls stand in
// lists that need no memory of their own, so that moving and ending them cannot fail.
// Not thread-safe but for the mark of a cancelled call.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "protocol.hpp"
#include "sluice/store.hpp"

namespace sluice::redis_detail {

/// What a stop request does, on the thread that requests it: it marks the call and wakes the I/O
/// thread, which ends marked calls. Raw pointers, because the registration is removed, which waits
/// for a hook that runs, before the call ends; and every call ends before its client does.
struct StopHook {
  std::atomic<bool>* mark;
  void (*wake)(void* client) noexcept;
  void* client;

  void operator()() const noexcept {
    mark->store(true);
    wake(client);
  }
};

/// One of the calls that count as in flight, until leave() or the end of its life.
class InFlight {
 public:
  InFlight() = default;
  /// Takes over what `taken` already counts.
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
  std::size_t output = 0;  // in the answer, of all steps
  Time deadline{};
  unsigned attempts = 0;  // how often it met NOSCRIPT
  Errc met{};             // what the server answered it, if that will pass
  unsigned pauses = 0;    // that it made since
  Time resumes{};         // in a pause: its end
  Errc end{};             // on its last way: what it ends with
  InFlight in_flight;
  std::atomic<bool> cancelled{false};
  std::optional<StopCallback<StopHook>> on_stop;
  CallPtr next;  // behind it in its list

  /// What comes before the completion, which may make the next call at once.
  void leave() noexcept {
    on_stop.reset();
    in_flight.leave();
  }
  /// Makes its memory that of a new call. REQUIRES: it has ended.
  void renew() noexcept {
    attempts = 0;
    met = {};
    pauses = 0;
    cancelled.store(false);
  }
};

/// Calls in order, each held by the one before it.
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
