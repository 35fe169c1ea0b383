// A store as a client on another machine sees it: the way there and back takes time, and the
// client's clock is its own. Threading: one thread asks.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "sluice/decide.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/virtual_clock.hpp"
#include "src/testing/late_answers.hpp"

namespace sluice::test {

class FarClient final : public StoreWrapper {
 public:
  /// The client's clock is the server's.
  FarClient(Store& store, VirtualClock& server) : StoreWrapper(store), server_(server) {}
  /// The client has a clock of its own, so far ahead of the server's; behind it, if negative. The
  /// server's is moved along, at the latest when the server is asked.
  FarClient(Store& store, VirtualClock& server, Span ahead)
      : StoreWrapper(store), server_(server), ahead_(ahead) {
    own_.emplace(server.now() + ahead);
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    ++asked;
    pass(way_there);
    Answer answer;
    inner().execute(plan, Completion(&receive, &answer));
    const testing::detail::KeptOutcome kept = answer.get_future().get();
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    pass(way_back);
    done(kept.view());
  }
  /// A wake-up would come on a thread that must not block, as execute() does here.
  std::unique_ptr<Subscription> subscribe(const Key&, std::function<void()>) noexcept override {
    return nullptr;
  }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }
  [[nodiscard]] Clock& clock() noexcept override { return own_ ? *own_ : server_; }

  /// Time passes, for the client and for the server. Where the client has its own clock, nothing
  /// else moves the server's.
  void pass(Span span) {
    if (span != Span{0}) (own_ ? *own_ : server_).advance(span);
    if (own_) server_.set(own_->now() - ahead_);
  }
  /// The server's clock is set by so much; the client's is not. REQUIRES: the client has its own.
  void step_server(Span by) {
    ahead_ -= by;
    pass(Span{0});
  }
  /// The client's own clock. REQUIRES: it has one.
  [[nodiscard]] VirtualClock& own_clock() { return *own_; }

  int asked = 0;
  Span way_there{0};
  Span way_back{0};
  std::function<void()> meanwhile;  // what happens while the answer of the next call is under way

 private:
  using Answer = std::promise<testing::detail::KeptOutcome>;
  static void receive(void* answer, const Outcome& outcome) noexcept {
    static_cast<Answer*>(answer)->set_value(testing::detail::KeptOutcome(outcome));
  }

  VirtualClock& server_;
  Span ahead_{0};
  std::optional<VirtualClock> own_;
};

}  // namespace sluice::test
