// The parts of std::stop_source, std::stop_token and std::stop_callback that Sluice and its users
// need, for standard libraries without them. Thread-safe as those are.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice::detail {

/// The shared state: whether a stop was requested, and the callbacks.
class StopState {
 public:
  /// An element of the list of callbacks.
  struct Node {
    void (*run)(Node& self) noexcept;
    Node* next = nullptr;
    Node** link = nullptr;  // the pointer to it; null: it is in no list
  };

  /// Runs the callbacks. False if a stop was requested before.
  bool request() noexcept;
  [[nodiscard]] bool is_requested() const noexcept;
  /// False if a stop was requested before: the caller then runs the callback.
  [[nodiscard]] bool add(Node& node) noexcept;
  /// When this returns, the callback is not running, except on this thread. REQUIRES: add() was
  /// true.
  void remove(Node& node) noexcept;

 private:
  static void unlink(Node& node) noexcept;

  mutable std::mutex mutex_;
  std::condition_variable ran_;
  bool requested_ = false;
  std::thread::id requester_;
  Node* running_ = nullptr;
  Node* first_ = nullptr;
};

class OwnStopToken {
 public:
  OwnStopToken() noexcept = default;
  explicit OwnStopToken(std::shared_ptr<StopState> state) noexcept : state_(std::move(state)) {}

  [[nodiscard]] bool stop_requested() const noexcept { return state_ && state_->is_requested(); }
  /// True for every token of a source, also after the source was destroyed.
  [[nodiscard]] bool stop_possible() const noexcept { return state_ != nullptr; }

 private:
  template <class Function>
  friend class OwnStopCallback;

  std::shared_ptr<StopState> state_;
};

class OwnStopSource {
 public:
  OwnStopSource() : state_(std::make_shared<StopState>()) {}

  [[nodiscard]] OwnStopToken get_token() const noexcept { return OwnStopToken(state_); }
  [[nodiscard]] bool stop_requested() const noexcept { return state_->is_requested(); }
  bool request_stop() noexcept {
    const auto state = state_;  // a callback may destroy this source
    return state->request();
  }

 private:
  std::shared_ptr<StopState> state_;
};

/// Calls the function when a stop is requested, on the requesting thread; in the constructor if one
/// was requested before.
template <class Function>
class OwnStopCallback : private StopState::Node {
 public:
  OwnStopCallback(const OwnStopToken& token, Function function)
      : Node{&OwnStopCallback::call}, function_(std::move(function)) {
    if (!token.state_) return;
    if (token.state_->add(*this)) {
      state_ = token.state_;
    } else {
      function_();
    }
  }
  OwnStopCallback(const OwnStopCallback&) = delete;
  OwnStopCallback& operator=(const OwnStopCallback&) = delete;
  ~OwnStopCallback() {
    if (state_) state_->remove(*this);
  }

 private:
  static void call(Node& self) noexcept { static_cast<OwnStopCallback&>(self).function_(); }

  Function function_;
  std::shared_ptr<StopState> state_;  // null: it is not registered
};

}  // namespace sluice::detail
