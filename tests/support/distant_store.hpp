// A store at the other end of a network, whose server has a clock of its own: for tests of what a
// client may believe. Trips take virtual time, questions and answers get lost, the server's clock
// is apart, slow, or set. Threading: any thread may ask, as long as the client's clock is moved by
// one at a time.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <semaphore>
#include <vector>

#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/store.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::test {

/// How long a call is on its way, and what is lost of it.
struct Trip {
  enum class Lost { nothing, question, answer };
  Span there{0};
  Span back{0};
  Lost lost = Lost::nothing;
};

/// The server decides a call when it arrives, by its own clock. Mostly a call blocks: execute()
/// moves the client's clock until the answer is there, and what else is due happens meanwhile. With
/// `later` it returns at once, and the answer comes when somebody moves that clock. A call without
/// an answer ends in Errc::unknown after its plan's time, or after `patience` if that has none.
/// Calls are kept until the store ends. REQUIRES: `server_clock` is the server's, and nobody else
/// moves it; the server answers without this client's clock being moved.
class DistantStore final : public Store {
 public:
  DistantStore(VirtualClock& here, Store& server, VirtualClock& server_clock)
      : here_(here),
        server_(server),
        server_clock_(server_clock),
        ahead_(server_clock.now() - here.now()),
        since_(here.now()) {}
  ~DistantStore() override {
    for (Call& call : calls_) {
      here_.cancel_timer(call.arrival);
      here_.cancel_timer(call.end);
    }
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    const Trip trip = draw ? draw() : next;
    const Time now = here_.now();
    const Span patient = plan.timeout() != Span{0} && keeps_deadlines ? plan.timeout() : patience;
    const bool told = trip.lost == Trip::Lost::nothing && trip.there + trip.back <= patient;
    const Time until = now + (told ? trip.there + trip.back : std::max(Span{0}, patient));
    Call& call = note(plan, std::move(done), told, now);
    if (trip.lost != Trip::Lost::question) ring_at(call.arrival, now + trip.there);
    ring_at(call.end, until);
    if (!later && until > here_.now()) here_.set(until);
  }
  [[nodiscard]] Clock& clock() noexcept override { return here_; }
  [[nodiscard]] bool may_block() const noexcept override { return !later; }

  /// The server's clock is set, by so much.
  void step_server(Span span) noexcept { ahead_ += span; }
  /// From now on it loses so many microseconds a second.
  void slow_server(Word lost) noexcept {
    ahead_ = server_now() - here_.now();
    since_ = here_.now();
    lost_ = lost;
  }
  [[nodiscard]] Time server_now() const noexcept {
    const Word behind = (here_.now() - since_).count() * lost_ / 1'000'000;
    return here_.now() + ahead_ - Span{behind};
  }

  [[nodiscard]] std::size_t asked() const noexcept { return calls_.size(); }
  /// When the last call was made.
  [[nodiscard]] Time last_asked() const noexcept { return calls_.back().asked; }

  Trip next;                   // of every call, unless there is
  std::function<Trip()> draw;  // which says it of each
  bool later = false;
  bool keeps_deadlines = true;  // else a plan's own time counts for nothing
  Span patience = std::chrono::hours{1};
  /// What the server has decided, at that instant.
  std::function<void(const Plan&, const Outcome&)> decided;

 private:
  struct Call {
    Call(DistantStore& store, const Plan& what, Completion answer, bool is_told, Time when)
        : owner(store), plan(what), done(std::move(answer)), told(is_told), asked(when) {}

    DistantStore& owner;
    OwnedPlan plan;
    Completion done;
    bool told;
    Time asked;
    Outcome outcome{};
    std::vector<Decision> steps{};
    std::vector<Word> output{};
    std::binary_semaphore is_decided{0};
    TimerCallback arrival{[](void* self) noexcept { static_cast<Call*>(self)->arrive(); }, this};
    TimerCallback end{[](void* self) noexcept { static_cast<Call*>(self)->finish(); }, this};

    void arrive() noexcept {
      owner.server_clock_.set(owner.server_now());
      Plan asked_for(plan.view().steps());  // its time was virtual
      if (plan.view().id()) asked_for = asked_for.idempotent(*plan.view().id());
      owner.server_.execute(asked_for, Completion(&Call::receive, this));
      is_decided.acquire();  // a real server answers on a thread of its own
      if (owner.decided) owner.decided(plan.view(), outcome);
    }
    static void receive(void* self, const Outcome& answer) noexcept {
      auto& call = *static_cast<Call*>(self);
      call.outcome = answer;
      call.steps.assign(answer.steps.begin(), answer.steps.end());
      call.output.assign(answer.output.begin(), answer.output.end());
      call.outcome.steps = call.steps;
      call.outcome.output = call.output;
      call.is_decided.release();
    }
    void finish() noexcept {
      if (told) return done(outcome);
      done.fail(Errc::unknown);
    }
  };

  Call& note(const Plan& plan, Completion done, bool told, Time now) {
    const std::lock_guard lock(mutex_);
    return calls_.emplace_back(*this, plan, std::move(done), told, now);
  }
  void ring_at(TimerCallback& timer, Time when) {
    if (here_.set_timer(timer, when) != TimerState::set) timer.ring();
  }

  VirtualClock& here_;
  Store& server_;
  VirtualClock& server_clock_;
  Span ahead_;
  Time since_;
  Word lost_ = 0;
  std::mutex mutex_;  // of the list
  std::deque<Call> calls_;
};

}  // namespace sluice::test
