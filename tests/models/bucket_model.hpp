// What the models of both kinds of token bucket have in common: callers who hold grants, and give
// back or settle one of them. Threading: one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sluice/reservation.hpp"
#include "tests/models/driver.hpp"
#include "tests/models/outstanding.hpp"

namespace sluice::test {

/// `Found`: how a model writes down what a grant found.
template <class Bucket, class Found>
class BucketModel : public Model {
 protected:
  explicit BucketModel(Life& life) : life_(life), random_(life.random) {}

  struct Held {
    std::size_t id;  // of its grant
    Word of;         // the limiter that it is of, or the version
    Found before;
    Reservation reservation;
  };
  /// What becomes of a grant of which so many tokens are given back: says by `expected_at_` when it
  /// is due then. Returns how many come back.
  virtual Word give_back(Held& held, Word tokens) = 0;
  /// Charges the bucket; says by `charged_` how many tokens.
  virtual void charge_more(Word amount) = 0;
  /// The limiter to ask about this grant; null if it cannot be asked.
  virtual const Bucket* bucket_of(const Held& held) = 0;
  /// More than fits into a bucket.
  virtual Word draw_debt() = 0;

  void refund() {
    Held* const held = draw_held();
    if (held == nullptr) return;
    Reservation& r = held->reservation;
    const Word granted = r.granted;
    const bool all = random_.one_in(2);
    const Word amount = all ? granted : random_.between(0, granted);
    life_.tell("amount", amount);
    const Bucket& bucket = *bucket_of(*held);
    const Word expected = give_back(*held, amount);
    REQUIRE((all ? bucket.cancel("k", r) : bucket.refund("k", r, amount)) == expected);
    given_back(*held, granted - amount);
  }
  /// After an estimate the true cost.
  void settle() {
    Held* const held = draw_held();
    if (held == nullptr) return;
    Reservation& r = held->reservation;
    const Word before = r.granted;
    const Word paid = r.granted + r.settled;
    const Word actual = random_.between(0, 2 * paid + 1) + (random_.one_in(4) ? draw_debt() : 0);
    if (actual > word_limit / 2) return;
    life_.tell("actual", actual);
    const Bucket& bucket = *bucket_of(*held);
    if (actual > paid) {
      charge_more(actual - paid);
      const Settlement done = bucket.settle("k", r, actual);
      REQUIRE((done.refunded == 0 && done.charged == charged_));
      if (charged_ < actual - paid) life_.saw("charged in part");
      return;
    }
    const Word amount = std::min(paid - actual, before);
    const Word expected = give_back(*held, amount);
    const Settlement done = bucket.settle("k", r, actual);
    REQUIRE((done.refunded == expected && done.charged == 0));
    given_back(*held, before - amount);
  }
  /// Units were given that no interval is judged by.
  void forget() {
    judge({});
    grants_.clear();
  }

  Life& life_;
  Random& random_;
  Outstanding grants_;
  std::vector<Held> held_;
  Word expected_at_ = 0;
  Word charged_ = 0;  // of the last charge, in whole tokens

 private:
  Held* draw_held() {
    if (held_.empty()) return nullptr;
    Held& held = held_[random_.one_in(2) ? held_.size() - 1 : random_.below(held_.size())];
    return bucket_of(held) == nullptr ? nullptr : &held;
  }
  void given_back(Held& held, Word left) {
    const Reservation& r = held.reservation;
    REQUIRE(r.granted == left);
    REQUIRE(to_word(r.ready_at()) == expected_at_);
    if (left == 0) held_.erase(held_.begin() + (&held - held_.data()));
  }
};

}  // namespace sluice::test
