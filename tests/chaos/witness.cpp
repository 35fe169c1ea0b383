#include "tests/chaos/witness.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

constexpr Word cost = 10'000;
constexpr Word most = 1'000'000;
constexpr int calls_of_a_key = 90;

}  // namespace

Witness::Witness(Store& store, std::uint32_t id)
    : id_(id),
      capacity_(most + static_cast<Word>(id)),
      bucket_(store, "witness", Quota::per(1, 30min).burst(capacity_)) {
  take_next_key();
}

void Witness::take_next_key() {
  tag_ = "w" + std::to_string(id_) + "-" + std::to_string(keys_++);
  calls_ = 0;
  last_ = capacity_;
  unknown_ = 0;
}

Step Witness::step() const { return bucket_.acquire_step(tag_, cost); }

bool Witness::hear(const std::error_code& error, const Decision& decision, std::uint64_t before,
                   std::uint64_t now) {
  bool is_right = true;
  if (error) {
    if (error == Failure::unknown) ++unknown_;
  } else if (is_degraded(decision.source)) {
    ++unknown_;  // the call behind it may be charged, if its deadline passed on a busy machine
  } else {
    const Word left = decision.remaining;
    const Word charged = (last_ - left) / cost;
    is_right = decision.allowed && left % cost == capacity_ % cost && left <= capacity_ - cost;
    if (heard_ == before && before == now && now % 2 == 0) {
      is_right = is_right && charged >= 1 && charged <= 1 + unknown_;
      unknown_ -= charged - 1;
    }
    last_ = left;
    heard_ = now;
  }
  if (++calls_ >= calls_of_a_key || !is_right) take_next_key();
  return is_right;
}

}  // namespace sluice::chaos
