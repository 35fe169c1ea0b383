// FaultyStore: which fault is injected into a call, and the answer that its caller gets.
#include "sluice/testing/faulty_store.hpp"

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "src/testing/late_answers.hpp"

namespace sluice::testing {
namespace {

void require_count(const char* what, std::uint64_t n) {
  if (n == 0) throw std::invalid_argument(std::string(what) + ": n must be 1 or more, got 0");
}

}  // namespace

class FaultyStore::Call final : public sluice::detail::PassedCall {
 public:
  Call(FaultyStore& store, const Fault& fault) : store_(store), fault_(fault) {}
  void answered(const Outcome& outcome) noexcept override {
    Outcome replaced;
    replaced.error = fault_.error;
    // A call that the inner store did not execute keeps its own error.
    const bool lost = fault_.error && !(outcome.error == Failure::not_executed);
    store_.answer(fault_, std::move(done), lost ? replaced : outcome);
  }

 private:
  FaultyStore& store_;
  Fault fault_;
};

FaultyStore::FaultyStore(Store& inner)
    : StoreWrapper(inner), late_(std::make_unique<detail::LateAnswers>(inner.clock())) {}

FaultyStore::~FaultyStore() { end(); }

void FaultyStore::fail_all(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  outage_ = fault;
}

void FaultyStore::play(FaultScript script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void FaultyStore::fail_call(std::uint64_t n, const Fault& fault) {
  require_count("fail_call", n);
  const std::lock_guard lock(mutex_);
  once_ = {n, 0, fault};
}

void FaultyStore::fail_every(std::uint64_t n, const Fault& fault) {
  require_count("fail_every", n);
  const std::lock_guard lock(mutex_);
  every_ = {n, 0, fault};
}

void FaultyStore::fail_some(double probability, const Fault& fault, Rng& rng) {
  if (!(probability >= 0 && probability <= 1)) {
    throw std::invalid_argument("fail_some: a probability lies in [0, 1], got " +
                                std::to_string(probability));
  }
  const std::lock_guard lock(mutex_);
  some_ = {probability, fault, &rng};
}

void FaultyStore::lose_wake_ups() {
  const std::lock_guard lock(mutex_);
  no_wake_ups_ = true;
}

void FaultyStore::heal() {
  const std::lock_guard lock(mutex_);
  forget();
}

void FaultyStore::reset() {
  const std::lock_guard lock(mutex_);
  forget();
  counts_ = {};
}

FaultCounts FaultyStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::size_t FaultyStore::held_back() const { return late_->size(); }

void FaultyStore::execute(const Plan& plan, Completion done) noexcept {
  const Fault fault = next();
  if (!fault.is_fault()) return inner().execute(plan, std::move(done));
  if (!fault.executed) return answer(fault, std::move(done), {fault.error, {}, {}, {}});
  std::unique_ptr<sluice::detail::PassedCall> call;
  try {
    call = std::make_unique<Call>(*this, fault);
    call->done = std::move(done);
    inner().execute(plan, in_flight_.pass(call));
  } catch (const std::bad_alloc&) {
    Completion& left = call ? call->done : done;
    left.fail(Errc::queue_full);
  }
}

void FaultyStore::notify(const Key& key) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (no_wake_ups_) return;
  }
  StoreWrapper::notify(key);
}

bool FaultyStore::Some::is_next() const {
  constexpr std::uint64_t steps = std::uint64_t{1} << 53;  // exact in a double
  return rng != nullptr &&
         static_cast<double>(rng->next() >> 11) < probability * static_cast<double>(steps);
}

void FaultyStore::forget() noexcept {
  outage_.reset();
  script_ = {};
  once_ = every_ = {};
  some_ = {};
  no_wake_ups_ = false;
}

/// Every kind counts and draws for every call, so that one does not shift another.
Fault FaultyStore::next() noexcept {
  const std::lock_guard lock(mutex_);
  const Fault scripted = script_.next();
  const bool once = once_.is_next();
  const bool every = every_.is_next();
  if (every) every_.calls = 0;
  const bool some = some_.is_next();
  const Fault fault = outage_               ? *outage_
                      : scripted.is_fault() ? scripted
                      : once                ? once_.fault
                      : every               ? every_.fault
                      : some                ? some_.fault
                                            : Fault::none();
  ++counts_.calls;
  ++(fault.executed ? counts_.executed : counts_.failed);
  if (fault.executed && fault.error) ++counts_.lost;
  if (fault.delay > Span{0}) ++counts_.delayed;
  return fault;
}

void FaultyStore::answer(const Fault& fault, Completion done, const Outcome& outcome) noexcept {
  if (fault.delay > Span{0}) return late_->deliver(std::move(done), outcome, fault.delay);
  done(outcome);
}

}  // namespace sluice::testing
