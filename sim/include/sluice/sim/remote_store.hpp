// RemoteStore: a store behind a simulated network. Threading: everything belongs to the thread that
// runs the timeline.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/sim/delay.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/store_server.hpp"
#include "sluice/sim/timeline.hpp"

namespace sluice::sim {

/// The way between one client and the store.
struct Link {
  Delay to_store;
  Delay from_store;
  /// The server that decides the plans; none: they are decided when they arrive.
  StoreServer* server = nullptr;
  const LinkFaults* faults = nullptr;  ///< none: no message is lost
  /// How long a call waits for its answer if its plan says nothing; zero: for ever.
  Span timeout{0};
};

/// One client's connection to a store: a plan reaches the inner store after a delay, is decided
/// there when it arrives, or when the server has served it, and the answer returns after another
/// delay. Messages of one RemoteStore do not overtake each other. Many can share the inner store.
/// Stop tokens of plans are ignored.
///
/// A call without an answer within its timeout fails with Errc::unknown, because it may have been
/// executed. If the server refuses connections, a call fails with Errc::not_connected after a
/// delay.
///
/// A plan that can never be executed (see find_fault()) fails at once and sends nothing.
/// may_block() is false, because virtual time stands still while a thread blocks. The destructor
/// answers pending calls, see hang_up(). REQUIRES: the timeline and the inner store outlive it,
/// unless close() was called; the inner store answers before its execute() returns, as the virtual
/// store does.
class RemoteStore : public StoreWrapper {
 public:
  RemoteStore(Timeline& timeline, Store& inner, const Link& link, const SeededRng& rng);
  ~RemoteStore() override { close(); }

  void execute(const Plan& plan, Completion done) noexcept override;
  /// False: a client does not know the server's clock.
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return false; }
  /// Binds nothing: a plan is decided later, when what was bound may be gone.
  void bind(const Key&, Binding&) noexcept override {}
  /// Wake-ups have the same delays as plans and answers, which may overtake them.
  void notify(const Key& key) noexcept override;
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override;
  [[nodiscard]] StorePart part_of(const Key& key) const noexcept override {
    return closed_ ? StorePart{} : StoreWrapper::part_of(key);
  }
  [[nodiscard]] bool may_block() const noexcept override { return false; }

  /// Fails pending calls: Errc::shut_down if they have not arrived at the store, else
  /// Errc::unknown.
  void hang_up() noexcept;

  /// Hangs up permanently: later calls fail with Errc::shut_down, and only clock() still uses the
  /// inner store; nothing uses the timeline.
  void close() noexcept;

  /// The client's process ends, as by kill -9: its calls fail with Errc::unknown now, and later
  /// ones with Errc::shut_down. Requests and wake-ups that it has sent still reach the store, which
  /// decides them; their answers reach nobody. What is still under way when the connection is
  /// destroyed, or close() called, is lost.
  void abandon() noexcept;

  /// The number of plans that the store allowed, and whose answer was lost by abandon().
  [[nodiscard]] std::uint64_t orphaned() const noexcept { return orphaned_; }
  /// The number of plans sent.
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  /// The number of plans sent and not yet answered.
  [[nodiscard]] std::size_t in_flight() const noexcept { return messages_.size() - free_.size(); }

 private:
  // Owns the steps and the bytes of their keys, because a plan is a view.
  struct Message {
    Message(RemoteStore& store, std::size_t place) : owner(store), index(place) {}
    RemoteStore& owner;
    std::size_t index;
    Completion done{nullptr, nullptr};
    std::vector<Step> steps;
    std::string bytes;
    std::vector<Word> words;  // the steps' tables
    std::optional<RequestId> id;
    std::error_code error;
    Decision decision;
    std::vector<Decision> each;
    std::vector<Word> output;
    Timeline::Timer timer;   // of the next thing that happens to the message
    Timeline::Timer expiry;  // of the call
    bool arrived = false;
    bool answer_lost = false;
    bool under_way = false;
    bool abandoned = false;
  };

  /// A wake-up in transit to or from the store.
  struct Call {
    std::string tag;
    std::string name;
    std::string unit;
    std::weak_ptr<const std::function<void()>> seen;  // from the store
    Timeline::Timer timer{};
  };
  class Watching;

  void send(Call call, DelayProcess& delay) noexcept;
  void call_arrives(std::uint64_t id);
  [[nodiscard]] Message& prepare(const Plan& plan);
  void send(Message& message);
  void arrive(std::uint64_t index);
  [[nodiscard]] Time next_delivery();
  void refuse(std::uint64_t index);
  void decide(std::uint64_t index);
  void expire(std::uint64_t index);
  void lose(Message& message) noexcept;
  void note_orphan(const Message& message) noexcept;
  [[nodiscard]] bool draw(std::uint32_t share);
  static void decided(void* context, const Outcome& outcome) noexcept;
  void deliver(std::uint64_t index);
  void release(Message& message) noexcept;

  Timeline& timeline_;
  Link link_;
  SeededRng rng_;
  DelayProcess to_store_;
  DelayProcess from_store_;
  Time last_arrival_{};
  Time last_delivery_{};
  std::uint64_t operations_ = 0;
  std::uint64_t orphaned_ = 0;
  std::deque<Message> messages_;
  std::vector<std::size_t> free_;
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t last_call_ = 0;
  bool closed_ = false;
  const std::shared_ptr<RemoteStore> alive_{this, [](RemoteStore*) noexcept {}};
};

}  // namespace sluice::sim
