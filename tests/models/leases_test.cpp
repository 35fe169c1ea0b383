// The model of leases: a list of what is held, in order of expiry, while limiters with other limits
// and TTLs and the tiers of a fleet share the key, and holders die, come back late, return twice or
// what is another's. Threading: single-threaded.
#include <algorithm>
#include <array>

#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/fleet_shedder.hpp"
#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

/// The definition. While the clock is behind the last change, time stands still for the key; if it
/// was set back by more than max_ahead, the key's time goes on from there, ahead of the clock.
class Table {
 public:
  struct Entry {
    LeaseId id;
    Word weight;
    Word expiry;  // in the key's time
    Word fence;   // 0: a block, which nobody holds
  };

  /// By the clock.
  [[nodiscard]] Word stands_from() const { return stamp_ - ahead_ - LeasesRule::max_ahead; }
  void look_at(Word clock) {
    clock_ = clock;
    has_changed_ = false;
    is_far_ = stands_from() > clock;
    key_clock_ = is_far_ ? stamp_ : clock + ahead_;
    at_ = std::max(key_clock_, stamp_);
    live_ = all_;
    lapsed_ = std::erase_if(live_, [&](const Entry& entry) { return entry.expiry <= at_; });
  }
  [[nodiscard]] const Entry* find(const LeaseId& id) const {
    const auto found = std::ranges::find(live_, id, &Entry::id);
    return found == live_.end() ? nullptr : &*found;
  }
  /// By the clock.
  [[nodiscard]] Word end_of(const Entry& entry) const { return entry.expiry - key_clock_ + clock_; }
  [[nodiscard]] bool is_blocked() const { return find(nobody) != nullptr; }
  /// When a lease ends by which some have ended, others not.
  [[nodiscard]] Word middle_end() const { return end_of(live_[live_.size() / 2]); }
  /// More than one grant takes off the list, while others live on.
  [[nodiscard]] bool has_crowd_lapsed() const {
    return lapsed_ > LeasesRule::max_reclaimed && !live_.empty();
  }
  /// As many as were ever held at once: each is used again.
  [[nodiscard]] Word places() const { return places_; }
  [[nodiscard]] bool has_changed() const { return has_changed_; }
  [[nodiscard]] Word newest_fence() const { return fence_; }

  [[nodiscard]] Predicted answer(Word limit) const {
    const Word last = live_.empty() ? key_clock_ : live_.back().expiry;
    return {.remaining = std::max<Word>(0, limit - held()), .reset_after = last - key_clock_};
  }
  /// After the clock was set far back leases are given up for whoever asks first.
  Predicted ask(Word limit, Word weight) {
    while (is_far_ && held() + weight > limit) live_.erase(live_.begin());
    Predicted predicted = answer(limit);
    Word left = held();
    for (auto next = live_.begin(); left + weight > limit; ++next) {
      left -= next->weight;
      predicted.allowed = false;
      predicted.retry_after = next->expiry - key_clock_;
    }
    return predicted;
  }
  Predicted acquire(const LeaseId& id, Word limit, Word weight, Word ttl) {
    if (find(id) != nullptr) return answer(limit);
    const Predicted predicted = ask(limit, weight);
    if (!predicted.allowed) return predicted;
    fence_ = std::max(fence_ + 1, clock_);
    enter({id, weight, at_ + ttl, fence_});
    return answer(limit);
  }
  bool release(const LeaseId& id) {
    if (std::erase_if(live_, [&](const Entry& entry) { return entry.id == id; }) == 0) return false;
    change();
    return true;
  }
  bool renew(const LeaseId& id, Word ttl) {
    const Entry* const found = find(id);
    if (found == nullptr) return false;
    if (Entry entry = *found; at_ + ttl > entry.expiry) {
      entry.expiry = at_ + ttl;
      release(id);
      enter(entry);
    }
    return true;
  }
  /// A lease as heavy as all limits.
  void block(Word span) {
    if (span > 0 && !renew(nobody, span)) enter({nobody, LeasesRule::block_weight, at_ + span, 0});
  }
  void reset() { all_.clear(); }

 private:
  static constexpr LeaseId nobody{};

  [[nodiscard]] Word held() const {
    Word sum = 0;
    for (const Entry& entry : live_) sum += entry.weight;
    return sum;
  }
  void enter(const Entry& entry) {
    live_.insert(std::ranges::upper_bound(live_, entry.expiry, {}, &Entry::expiry), entry);
    places_ = std::max<Word>(places_, std::ssize(live_));
    change();
  }
  void change() {
    has_changed_ = true;
    all_ = live_;
    stamp_ = at_;
    ahead_ = key_clock_ - clock_;
  }

  std::vector<Entry> all_;
  Word stamp_ = 0;
  Word ahead_ = 0;
  Word fence_ = 0;
  Word places_ = 0;
  // At the present instant:
  std::vector<Entry> live_;
  Word clock_ = 0;
  Word key_clock_ = 0;
  Word at_ = 0;
  std::size_t lapsed_ = 0;  // since the last change
  bool is_far_ = false;
  bool has_changed_ = false;
};

/// A limit, and who asks under it: a limiter, or a tier of a fleet.
struct Desk {
  ConcurrencyLimiter jobs;
  std::optional<FleetShedder> fleet;
  std::string tier;
  Word part = 0;

  [[nodiscard]] Lease try_acquire(const Key& key, Word weight) const {
    return fleet ? fleet->try_acquire(tier, weight) : jobs.try_acquire(key, weight);
  }
  [[nodiscard]] Step acquire_step(const Key& key, const LeaseId& id, Word weight) const {
    return fleet ? fleet->acquire_step(tier, key, id, weight) : jobs.acquire_step(key, id, weight);
  }
  [[nodiscard]] Decision peek(const Key& key, Word weight) const {
    return fleet ? fleet->peek(tier, weight) : jobs.peek(key, weight);
  }
  [[nodiscard]] Word ttl() const { return jobs.options().ttl.count(); }
};

class LeasesModel final : public Model {
 public:
  explicit LeasesModel(Life& life)
      : life_(life), is_crowded_(life.random.one_in(4)), most_ttl_(draw_most_ttl()) {
    const bool is_fleet = life.random.one_in(2);
    if (is_fleet) open_fleet();
    const std::size_t more = life.patient ? (is_fleet ? 0 : 1) : life.random.below(2) + 1;
    for (std::size_t i = 0; i < more; ++i) {
      desks_.push_back(
          {ConcurrencyLimiter(life.store, life.name, draw_limit(), draw_options()), {}, {}, 0});
    }
    for (const Desk& desk : desks_) most_limit_ = std::max(most_limit_, desk.jobs.limit());
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 72, [this] { acquire(); }},
            {"acquire by id", 36, [this] { acquire_by_id(); }},
            {"release", 24, [this] { release(); }, true},
            {"release by id", 24, [this] { release_by_id(); }, true},
            {"renew", 12, [this] { renew(); }, true},
            {"renew by id", 24, [this] { renew_by_id(); }, true},
            {"peek", 24, [this] { peek(); }, true},
            {"block", 3, [this] { block(); }, true},
            {"reset", 2, [this] { reset(); }}};
  }
  Moves moves() const override {
    const Span far = life_.farthest_back();
    const bool near = is_crowded_ || life_.random.one_in(3);
    return {most_ttl_ / (1 + most_limit_ / 2), most_ttl_, near ? std::min(far, most_ttl_) : far};
  }
  std::optional<Time> edge() const override {
    if (is_crowded_) return {};
    return to_time(table_.stands_from());
  }
  Callers callers() const override { return {static_cast<Word>(desks_.size()) * 3, most_ttl_ / 2}; }
  /// The cost says for which tier, and for which weight.
  Decision ask(Word cost) override {
    const auto [weight, desk] = std::div(cost - 1, static_cast<Word>(desks_.size()));
    return acquire(desks_[static_cast<std::size_t>(desk)], weight + 1, cost);
  }

  /// All leases together, and each as it is granted, keep to the limits; fences rise.
  void judge(const History& history) override {
    life_.keep(check_leases(events_, most_limit_));
    events_.clear();
    judged_fence_ = table_.newest_fence();
    if (life_.patient) life_.keep(check_remaining(history, most_limit_));
  }

 private:
  /// What a holder knows of its lease; by id alone, if the lease is empty.
  struct Known {
    LeaseId id;
    Lease lease;
    Word ttl;
    bool is_lost = false;
  };

  [[nodiscard]] Span draw_most_ttl() {
    const bool is_long = !is_crowded_ && life_.random.one_in(3);
    return Span{life_.random.between(LeasesRule::min_ttl, is_long ? 100'000'000 : 100'000)};
  }
  /// A grant takes up to max_reclaimed leases off the list, so more are not held where the clock
  /// may be set far back: which of them were given up would depend on it.
  [[nodiscard]] Word draw_limit() {
    static_assert(LeasesRule::max_reclaimed > 15);
    return is_crowded_ ? life_.random.between(30, 90)
                       : life_.random.between(1, life_.random.one_in(2) ? 15 : 5);
  }
  [[nodiscard]] LeaseOptions draw_options() {
    const bool same = life_.random.one_in(2);
    const Word ttl =
        same ? most_ttl_.count() : life_.random.between(LeasesRule::min_ttl, most_ttl_.count());
    return {.ttl = Span{ttl}, .rng = &life_.random};
  }
  void open_fleet() {
    const Word capacity = draw_limit();
    const LeaseOptions options = draw_options();
    std::vector<Tier> tiers{{"tier 0", FleetShare::places(capacity)}};
    while (life_.random.one_in(2) && tiers.size() < 4) {
      const Word share = life_.random.between(1, tiers.back().share.of(capacity));
      tiers.push_back({"tier " + std::to_string(tiers.size()), FleetShare::places(share)});
    }
    const FleetShedder fleet(life_.store, life_.name, capacity, tiers, options);
    for (const Tier& tier : tiers) {
      desks_.push_back(
          {ConcurrencyLimiter(life_.store, life_.name, tier.share.of(capacity), options), fleet,
           tier.name, static_cast<Word>(desks_.size())});
    }
  }

  [[nodiscard]] Key key() const { return {life_.name, life_.name}; }  // a fleet's
  const Desk& draw_desk() {
    table_.look_at(life_.tick());
    return life_.draw("desk", desks_);
  }
  [[nodiscard]] Word draw_weight(const Desk& desk) {
    const Word limit = desk.jobs.limit();
    return life_.random.between(1, life_.random.one_in(5) ? limit
                                   : is_crowded_          ? 1
                                                          : std::min<Word>(limit, 3));
  }
  Known* draw_known() {
    if (known_.empty()) return nullptr;
    const std::size_t recent = std::min<std::size_t>(known_.size(), is_crowded_ ? 90 : 6);
    const std::size_t back = 1 + life_.random.below(recent);
    life_.tell("of the newest", static_cast<Word>(back));
    return &known_[known_.size() - back];
  }
  /// Of a lease that is or was somebody's, or a stranger's that is nearly the same.
  LeaseId draw_id() {
    const Known* const known = draw_known();
    LeaseId id = known != nullptr ? known->id : LeaseId::draw(life_.random);
    if (life_.random.one_in(10)) {
      const auto bit = std::uint64_t{1} << life_.random.below(64);
      (life_.random.one_in(2) ? id.high : id.low) ^= bit;
    }
    return id;
  }

  Decision ask(const Step& step, std::span<Word> told) {
    std::error_code error;
    const Decision d = decide(life_.store, step, error, {}, told);
    REQUIRE_FALSE(error);
    return d;
  }
  void require(const Desk& desk, const Decision& d, const Predicted& predicted) {
    life_.require(d, predicted);
    REQUIRE(d.part == desk.part);
    if (desk.fleet) REQUIRE(desk.fleet->tier_of(d) == desk.tier);
    if (!d.allowed && table_.is_blocked()) life_.saw("refused by a block");
  }
  void note(LeaseRecord::Act act, const Table::Entry& entry, Word share = word_limit) {
    if (table_.has_changed()) life_.wrote();
    if (act == LeaseRecord::Act::acquired) {
      life_.due(to_time(table_.middle_end()));
    } else {
      life_.changed();
      if (entry.fence <= judged_fence_) return;
    }
    events_.push_back({life_.now(), act, static_cast<std::uint64_t>(entry.fence), entry.weight,
                       to_time(table_.end_of(entry)), entry.fence, share});
  }

  void acquire() {
    const Desk& desk = draw_desk();
    Word many = 1;  // at one instant, so that their leases end at one
    if (life_.random.one_in(6)) many = is_crowded_ ? life_.random.between(17, 40) : 4;
    for (; many > 0; --many) {
      const Word weight = draw_weight(desk);
      acquire(desk, weight, weight);
    }
  }
  Decision acquire(const Desk& desk, Word weight, Word cost) {
    table_.look_at(life_.tick());
    const Word limit = desk.jobs.limit();
    weight = std::min(weight, limit);
    life_.tell("weight", weight);
    Lease lease = desk.try_acquire(key(), weight);
    const bool fits = table_.answer(limit).remaining >= weight;
    const bool crowd_lapsed = table_.has_crowd_lapsed();
    const Predicted predicted =
        table_.acquire(lease ? lease.id() : LeaseId::draw(life_.random), limit, weight, desk.ttl());
    require(desk, lease.decision(), predicted);
    life_.note(lease.decision(), cost);
    if (!lease) return lease.decision();
    const Table::Entry& entry = *table_.find(lease.id());
    REQUIRE(lease.fence() == entry.fence);
    REQUIRE(to_word(lease.expires_at()) == table_.end_of(entry));
    REQUIRE_FALSE(lease.lost());
    if (crowd_lapsed) life_.saw("a crowd has lapsed");
    if (!fits) life_.saw("others given up");
    note(LeaseRecord::Act::acquired, entry, fits ? limit : word_limit);
    const Decision d = lease.decision();
    known_.push_back({lease.id(), std::move(lease), desk.ttl()});
    return d;
  }
  /// Of an id that is live, again. One that is over may be used anew, unless an object knows where
  /// it was.
  void acquire_by_id() {
    const Desk& desk = draw_desk();
    const Word limit = desk.jobs.limit();
    const Word weight = draw_weight(desk);
    life_.tell("weight", weight);
    const Known* const known = life_.random.one_in(2) ? draw_known() : nullptr;
    const bool is_usable = known != nullptr && (!known->lease || table_.find(known->id) != nullptr);
    const LeaseId id = is_usable ? known->id : LeaseId::draw(life_.random);
    const bool was_live = table_.find(id) != nullptr;
    const bool fits = table_.answer(limit).remaining >= weight;
    const Predicted predicted = table_.acquire(id, limit, weight, desk.ttl());
    std::array<Word, ConcurrencyLimiter::output> told{};
    const Decision d = ask(desk.acquire_step(key(), id, weight), told);
    require(desk, d, predicted);
    life_.note(d, weight);
    const Table::Entry* const entry = table_.find(id);
    if (entry == nullptr) {
      REQUIRE(told == std::array<Word, 4>{desk.part});
      return;
    }
    REQUIRE((told[0] == desk.part && told[1] >= 1 && told[1] <= table_.places()));
    REQUIRE(told[2] == entry->fence);
    REQUIRE(told[3] == table_.end_of(*entry));
    if (was_live) return life_.saw("granted before");
    note(LeaseRecord::Act::acquired, *entry, fits ? limit : word_limit);
    if (!is_usable) known_.push_back({id, {}, desk.ttl()});
  }

  void release() {
    table_.look_at(life_.tick());
    Known* const known = draw_known();
    if (known == nullptr || !known->lease) return;
    REQUIRE(known->lease.release() == took_back(known->id));
    REQUIRE_FALSE(known->lease.release());
  }
  void release_by_id() {
    const Desk& desk = draw_desk();
    const LeaseId id = draw_id();
    const bool was_live = took_back(id);
    std::array<Word, 1> told{};
    const Decision d = ask(desk.jobs.release_step(key(), id), told);
    REQUIRE((told[0] == 1) == was_live);
    Predicted predicted = table_.answer(desk.jobs.limit());
    REQUIRE(d.reset_after.count() >= predicted.reset_after);
    if (was_live) predicted.reset_after.reset();  // an upper bound
    life_.require(d, predicted);
  }
  bool took_back(const LeaseId& id) {
    const Table::Entry* const found = table_.find(id);
    life_.saw(found != nullptr ? "taken back" : "nothing to take back");
    if (found == nullptr) return false;
    const Table::Entry entry = *found;
    table_.release(id);
    note(LeaseRecord::Act::released, entry);
    return true;
  }

  void renew() {
    table_.look_at(life_.tick());
    Known* const known = draw_known();
    if (known == nullptr || !known->lease) return;
    const bool renewed = known->lease.renew();
    // Who was told that it lost a place has lost it, even if the clock is set back then.
    REQUIRE(renewed == (!known->is_lost && has_renewed(known->id, known->ttl)));
    known->is_lost = !renewed;
    if (!renewed) return;
    REQUIRE(to_word(known->lease.expires_at()) == table_.end_of(*table_.find(known->id)));
    REQUIRE_FALSE(known->lease.lost());
  }
  void renew_by_id() {
    const Desk& desk = draw_desk();
    const LeaseId id = draw_id();
    const bool is_live = has_renewed(id, desk.ttl());
    std::array<Word, 2> told{};
    const Decision d = ask(desk.jobs.renew_step(key(), id), told);
    Predicted predicted = table_.answer(desk.jobs.limit());
    predicted.allowed = is_live;
    life_.require(d, predicted);
    std::array<Word, 2> expected{};
    if (is_live) expected = {table_.find(id)->fence, table_.end_of(*table_.find(id))};
    REQUIRE(told == expected);
  }
  bool has_renewed(const LeaseId& id, Word ttl) {
    const bool is_live = table_.renew(id, ttl);
    life_.saw(is_live ? "renewed" : "not renewed");
    if (is_live) note(LeaseRecord::Act::renewed, *table_.find(id));
    return is_live;
  }

  void peek() {
    const Desk& desk = draw_desk();
    const Word weight = draw_weight(desk);
    life_.tell("weight", weight);
    require(desk, desk.peek(key(), weight), table_.ask(desk.jobs.limit(), weight));
  }
  void block() {
    const Desk& desk = draw_desk();
    const Word span =
        life_.random.between(0, most_ttl_.count() / (life_.random.one_in(3) ? 1 : 10));
    life_.tell("span", span);
    const Decision d =
        desk.fleet ? desk.fleet->block(Span{span}) : desk.jobs.block(key(), Span{span});
    table_.block(span);
    if (table_.has_changed()) life_.wrote();
    life_.changed();
    const Word limit = desk.fleet ? desk.fleet->capacity() : desk.jobs.limit();
    life_.require(d, table_.answer(limit));
  }
  void reset() {
    const Desk& desk = draw_desk();
    life_.begin_history();
    desk.fleet ? desk.fleet->reset() : desk.jobs.reset(key());
    table_.reset();
  }

  Life& life_;
  bool is_crowded_;  // more ask at once than one grant takes off the list
  Span most_ttl_;
  std::vector<Desk> desks_;
  Word most_limit_ = 0;
  Table table_;
  std::vector<Known> known_;
  std::vector<LeaseRecord> events_;
  Word judged_fence_ = 0;  // leases of fences up to it are not in events_
};

}  // namespace

TEST_CASE("leases are granted, refused, renewed and taken back as a list of them says",
          "[model][leases][fleet_shedder][S3][S5][L1][C-030]") {
  live<LeasesModel>({.outcomes = {"admitted", "refused", "refused by a block", "granted before",
                                  "taken back", "nothing to take back", "renewed", "not renewed",
                                  "others given up", "a crowd has lapsed"},
                     .lives = 300});
}
