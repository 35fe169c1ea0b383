// The parts of a PrefetchStore: its entries in shards, the trips to the store behind it, plans of
// several steps, and the return of idle units. Threading: any member from any thread.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/detail/in_flight.hpp"
#include "sluice/detail/store_ref.hpp"
#include "sluice/extend/binding.hpp"
#include "sluice/extend/conclude.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/prefetch_store.hpp"
#include "src/stores/prefetch_account.hpp"
#include "src/stores/prefetch_credit.hpp"
#include "src/stores/prefetch_ticker.hpp"

namespace sluice {

class PrefetchStore::Impl {
 public:
  Impl(PrefetchStore& owner, const PrefetchStoreOptions& options);
  ~Impl();

  void execute(const Plan& plan, Completion& done) noexcept;
  void bind(const Key& key, Binding& binding) const noexcept;
  [[nodiscard]] PrefetchStats stats() const noexcept;

 private:
  using Hash = std::array<std::uint64_t, 2>;
  using Lock = std::unique_lock<std::mutex>;
  struct HashOf {
    std::size_t operator()(const Hash& hash) const noexcept { return hash[0]; }
  };

  [[nodiscard]] Store& inner() const noexcept { return owner_.inner(); }

  /// An answer to deliver once the lock is released.
  struct Answer {
    Completion done{nullptr, nullptr};
    std::error_code error{};
    Decision decision{};
    std::array<Word, max_output> output{};
    std::size_t output_count = 0;

    void deliver() noexcept;
  };
  /// A caller that waits for the answer to a trip.
  struct Waiting {
    const Operation* operation;
    Arguments args;
    prefetch::Request request;
    Span timeout;
    Answer answer{};
  };
  using Queue = std::list<Waiting>;
  static constexpr std::size_t all_callers = ~std::size_t{0};
  /// What a bound key has besides: its limit, and the credit of threads.
  struct Bound {
    Word limit;
    prefetch::Credit threads;
  };
  struct Entry {
    Entry(const Step& step, const prefetch::Account::Terms& terms) : account(step, terms) {}
    prefetch::Account account;
    Queue waiting{};
    bool under_way = false;                // a trip
    std::size_t plans = 0;                 // that have spent here, and wait for their other steps
    Span timeout{0};                       // of that trip
    std::unique_ptr<Bound> credit{};       // if bindings refer to this entry, which then stays
    std::unique_ptr<Subscription> news{};  // of changes, once a refusal was long
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Hash, std::unique_ptr<Entry>, HashOf> entries;
    Time sweep_at{};
  };

  /// How a trip asks: for what is there now; for units at a later time, as many as are wanted, and
  /// only those that are needed.
  enum class Stage : std::uint8_t { now, ahead, ahead_needed };
  class Trip;
  /// A trip to send once the lock is released.
  struct Departure {
    std::optional<Step> step{};
    Span timeout{0};
    Completion done{nullptr, nullptr};
  };
  struct Sending;
  class PlanCall;
  class ChangeCall;
  /// A step of a plan, and what was spent for it here.
  struct Part {
    AskedStep asked;
    bool here = false;
    Answer answer{};
    Hash hash{};
    std::uint64_t lot = 0;
    prefetch::Request request{};
    Time spent_at{};
    Time until{};  // the units count
    std::uint64_t epoch = 0;
  };
  struct Counts {
    std::atomic<std::uint64_t> local{0}, trips{0}, passed_on{0}, taken{0}, returned{0}, lapsed{0};
  };

  // prefetch_store.cpp
  [[nodiscard]] Hash hash_of(const Key& key) const noexcept;
  [[nodiscard]] Shard& shard_of(const Hash& hash) noexcept {
    return shards_[hash[1] % shard_count];
  }
  [[nodiscard]] Entry* find(Shard& shard, const Hash& hash) noexcept;
  [[nodiscard]] Entry* find_or_make(Shard& shard, const Hash& hash, const Step& step) noexcept;
  [[nodiscard]] bool is_unused(Entry& entry, Time now) noexcept;
  [[nodiscard]] bool is_forked() const noexcept { return !home_.is_here(); }
  void pass_on(const Plan& plan, Completion& done) noexcept;
  void decide_one(const Plan& plan, const prefetch::Request& request, Completion& done) noexcept;
  [[nodiscard]] bool refund_one(const Step& step, const prefetch::RefundAsked& refund,
                                Completion& done) noexcept;
  void pass_change(const Plan& plan, Completion& done) noexcept;
  void note_changes(const Plan& plan, bool is_answered) noexcept;
  [[nodiscard]] static bool may_join(const Entry& entry, const Plan& plan) noexcept;
  [[nodiscard]] static bool join(Entry& entry, const Plan& plan, const prefetch::Request& request,
                                 Completion& done) noexcept;
  [[nodiscard]] Time read_clock(Entry& entry) noexcept;
  void write(Answer& answer, const Step& step, const prefetch::Local& local, const Entry& entry,
             Time now) const noexcept;

  [[nodiscard]] Word drop(Entry& entry) noexcept;

  // prefetch_bound.cpp
  [[nodiscard]] Entry* bound_entry(const Step& step) const noexcept;
  [[nodiscard]] bool spend_credit(const Plan& plan, Completion& done) noexcept;
  void give_credit(Entry& entry, const Step& step, Time now) noexcept;
  void take_credits(Entry& entry, Time now) noexcept;

  // prefetch_trip.cpp
  [[nodiscard]] Departure depart(Entry& entry, Time now) noexcept;
  [[nodiscard]] Departure depart(Entry& entry, const prefetch::Ask& ask, Stage stage,
                                 Time now) noexcept;
  [[nodiscard]] Word wait_of(const Entry& entry) const noexcept;
  void send(Departure& departure) noexcept;
  void send_all(Departure departure, Queue& answers) noexcept;
  void answered(const Trip& trip, const Outcome& outcome) noexcept;
  [[nodiscard]] Departure next_stage(const Trip& trip, const Outcome& outcome, Time now) noexcept;
  void grant(const Trip& trip, const Outcome& outcome, Time now, Queue& answers) noexcept;
  void refuse(const Trip& trip, const Decision& decision, Time now, Queue& answers) noexcept;
  void settle(Entry& entry, Time now, Queue& answers, std::size_t most = all_callers) noexcept;
  static void fail(Entry& entry, std::error_code error, Queue& answers) noexcept;
  static void fail_first(Entry& entry, std::error_code error, Queue& answers) noexcept;
  void pass_degraded(const Trip& trip, const Outcome& outcome, Time now, Queue& answers) noexcept;
  void listen(Shard& shard, const Step& pattern) noexcept;
  void forget_refusals(const Hash& hash) noexcept;

  // prefetch_plan.cpp
  void decide_plan(const Plan& plan, Completion& done) noexcept;
  [[nodiscard]] bool spend_now(const Step& step, const prefetch::Request& request,
                               Part& part) noexcept;
  bool end_part(const Part& part, bool spent) noexcept;

  // prefetch_returns.cpp
  void give_back_idle() noexcept;
  void give_back(Shard& shard, bool idle_only) noexcept;
  void give_back(Entry& entry, Time now, std::vector<OwnedPlan>& refunds) noexcept;

  static constexpr std::size_t shard_count = 64;

  PrefetchStore& owner_;
  detail::Life::View inner_life_;
  detail::Life::View clock_life_;
  PrefetchStoreOptions options_;
  std::array<std::uint64_t, 2> secret_;
  detail::HomeProcess home_;
  bool same_clock_;
  std::array<Shard, shard_count> shards_;
  Counts counts_;
  std::shared_ptr<prefetch::Gate<Impl>> gate_;  // for notifications that come late
  std::atomic<bool> closing_{false};
  std::optional<prefetch::Ticker> ticker_;
  detail::InFlight in_flight_;  // the last member: pending trips end first
};

}  // namespace sluice
