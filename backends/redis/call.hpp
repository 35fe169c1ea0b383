// One plan on its way: what was asked, until when, and who waits for the answer.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
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

/// A place among the calls in flight, held until leave() or the end of its life.
class Place {
 public:
  Place() = default;
  /// Takes over a place that `taken` already counts.
  explicit Place(std::atomic<std::size_t>& taken) noexcept : taken_(&taken) {}
  Place(Place&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
  Place& operator=(Place&& other) noexcept {
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~Place() { leave(); }

  void leave() noexcept {
    if (auto* taken = std::exchange(taken_, nullptr)) taken->fetch_sub(1);
  }

 private:
  std::atomic<std::size_t>* taken_ = nullptr;
};

/// Has one owner at a time: the caller's thread, then the inbox, then the pipeline.
struct Call {
  Completion done{nullptr, nullptr};
  Request request;
  std::uint64_t nonce = 0;
  std::array<Word, Plan::max_steps> limits{};
  std::size_t steps = 0;
  Time deadline{};
  unsigned attempts = 0;  // how often it met NOSCRIPT
  Place place;
  std::atomic<bool> cancelled{false};
  std::optional<std::stop_callback<StopHook>> on_stop;

  /// What comes before the completion, which may make the next call at once.
  void leave() noexcept {
    on_stop.reset();
    place.leave();
  }
};

using CallPtr = std::unique_ptr<Call>;

}  // namespace sluice::redis_detail
