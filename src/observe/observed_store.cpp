#include "sluice/observed_store.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/extend/operation.hpp"
#include "sluice/rules/gate.hpp"
#include "src/observe/told_step.hpp"

namespace sluice {
namespace {

bool asks(const Step& step) noexcept {
  return step.operation->grants != Operation::Grants::nothing;
}

/// The limit that decided: the decision's own step, unless that only says whose turn it is. Null:
/// the plan asks for nothing.
const Step* decisive(std::span<const Step> steps, std::size_t index) noexcept {
  if (index < steps.size() && asks(steps[index])) return &steps[index];
  const auto found = std::find_if(steps.begin(), steps.end(), asks);
  return found == steps.end() ? nullptr : &*found;
}

void tell_gates(Observer& observer, std::span<const Step> steps, Time at) noexcept {
  for (const Step& step : steps) {
    GateEvent event{.gates = step.key.tag(), .scope = step.key.name(), .until = at};
    if (step.operation == &gate_open) {
      event.is_closed = false;
    } else if (step.operation == &gate_close && step.args[4] > 0) {
      event.until += Span{std::min(step.args[1], step.args[4])};
    } else {
      continue;
    }
    detail::tell(observer, event);
  }
}

}  // namespace

/// A request to a store that answers by its own clock.
struct ObservedStore::Trip {
  Span took{0};
  unsigned part = 0;
};

/// What is told of the requests of one store. They may outlive it: its inner store fails those that
/// are under way when it ends.
struct ObservedStore::Watch {
  Watch(Observer& told, detail::TextArg named) : observer(told), name(named.view()) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// One that is not in use; null: there is no memory.
  [[nodiscard]] Request* take() noexcept;

  void tell(std::span<const Step> steps, bool is_of_wait, const std::error_code& error,
            const Decision& decision, const Trip& trip) noexcept {
    if (const Step* const step = decisive(steps, decision.step)) {
      const auto index = static_cast<std::size_t>(step - steps.data());
      if (&detail::named_by(steps, index) == step) {
        tell_one(*step, is_of_wait, error, decision, trip);
      } else {
        tell_one(detail::told_step(steps, index), is_of_wait, error, decision, trip);
      }
    }
    if (!error && decision.allowed) tell_gates(observer, steps, decision.at);
  }

  void tell_one(const Step& step, bool is_of_wait, const std::error_code& error,
                const Decision& decision, const Trip& trip) noexcept {
    detail::tell(observer, DecisionEvent{.step = step,
                                         .decision = decision,
                                         .error = error,
                                         .store = name,
                                         .is_of_wait = is_of_wait,
                                         .took = trip.took,
                                         .part = trip.part});
  }

  Observer& observer;
  const std::string name;
  std::mutex mutex;
  Request* free = nullptr;  // guarded by mutex: a list of those that are not in use
};

/// A request under way, with a copy of the steps that the observer is told of.
struct ObservedStore::Request {
  void copy(std::span<const Step> plan) {
    steps.assign(plan.begin(), plan.end());
    bytes.clear();
    std::size_t size = 0;
    for (const Step& step : plan) size += step.key.tag().size() + step.key.name().size();
    bytes.reserve(size);
    const auto keep = [this](std::string_view text) {
      const std::size_t begin = bytes.size();
      bytes += text;
      return std::string_view(bytes).substr(begin);
    };
    for (Step& step : steps) {
      const std::string_view tag = keep(step.key.tag());
      step.key = Key{tag, keep(step.key.name())};
      step.binding = nullptr;
      step.table = {};
    }
  }
  static void answered(void* self, const Outcome& outcome) noexcept;

  std::shared_ptr<Watch> watch{};
  Clock* clock = nullptr;  // null: it is not timed
  Time asked{};
  unsigned part = 0;
  bool is_of_wait = false;
  bool may_be_skipped = false;
  std::vector<Step> steps{};
  std::string bytes{};
  std::optional<Completion> done{};
  Request* next = nullptr;
};

ObservedStore::Watch::~Watch() {
  while (free != nullptr) delete std::exchange(free, free->next);
}

ObservedStore::Request* ObservedStore::Watch::take() noexcept {
  {
    const std::lock_guard lock(mutex);
    if (free != nullptr) return std::exchange(free, free->next);
  }
  return new (std::nothrow) Request;
}

void ObservedStore::Request::answered(void* self, const Outcome& outcome) noexcept {
  Request& request = *static_cast<Request*>(self);
  const std::shared_ptr<Watch> watch = std::move(request.watch);
  if (!request.may_be_skipped || outcome.error != Errc::cancelled) {
    // A store that ends may have no clock any more.
    const bool is_timed = request.clock != nullptr && outcome.error != Errc::shut_down;
    const Span took = is_timed ? request.clock->now() - request.asked : Span{0};
    watch->tell(request.steps, request.is_of_wait, outcome.error, outcome.decision,
                {took, request.part});
  }
  Completion done = std::move(*request.done);
  request.done.reset();
  {
    const std::lock_guard lock(watch->mutex);
    request.next = std::exchange(watch->free, &request);
  }
  done(outcome);
}

ObservedStore::ObservedStore(const StoreHandle& inner, Observer& observer, detail::TextArg name)
    : StoreWrapper(inner),
      clock_(this->inner().stamps_by_clock() ? nullptr : &this->inner().clock()),
      watch_(std::make_shared<Watch>(observer, name)) {}

ObservedStore::~ObservedStore() = default;

Observer* ObservedStore::observer() const noexcept { return &watch_->observer; }

const std::string& ObservedStore::name() const noexcept { return watch_->name; }

/// The server that is asked, of a request that is timed.
unsigned ObservedStore::part_asked(std::span<const Step> steps) const noexcept {
  return clock_ == nullptr || steps.empty() ? 0 : inner().part_of(steps.front().key).index;
}

/// The completion itself if there is no memory to observe it: the call goes on.
Completion ObservedStore::observed(const Plan& plan, Completion done,
                                   bool may_be_skipped) noexcept {
  Request* const request = watch_->take();
  if (request == nullptr) return done;
  try {
    request->copy(plan.steps());
  } catch (const std::bad_alloc&) {
    delete request;
    return done;
  }
  request->watch = watch_;
  request->clock = clock_;
  request->asked = clock_ != nullptr ? clock_->now() : Time{};
  request->part = part_asked(plan.steps());
  request->is_of_wait = plan.is_of_wait();
  request->may_be_skipped = may_be_skipped;
  request->done.emplace(std::move(done));
  return {&Request::answered, request};
}

void ObservedStore::observe_all(std::span<const Plan> plans, std::span<Completion> done,
                                bool may_be_skipped) noexcept {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    done[i] = observed(plans[i], std::move(done[i]), may_be_skipped);
  }
}

void ObservedStore::execute(const Plan& plan, Completion done) noexcept {
  inner().execute(plan, observed(plan, std::move(done), false));
}

Decision ObservedStore::decide_one(const Step& step, std::error_code& error) noexcept {
  const Time asked = clock_ != nullptr ? clock_->now() : Time{};
  const unsigned part = part_asked({&step, 1});
  const Decision decision = inner().decide_one(step, error);
  const Span took = clock_ != nullptr ? clock_->now() - asked : Span{0};
  watch_->tell({&step, 1}, false, error, decision, {took, part});
  return decision;
}

void ObservedStore::execute_batch(std::span<const Plan> plans,
                                  std::span<Completion> done) noexcept {
  observe_all(plans, done, false);
  inner().execute_batch(plans, done);
}

void ObservedStore::execute_first(std::span<const Plan> plans,
                                  std::span<Completion> done) noexcept {
  observe_all(plans, done, true);
  inner().execute_first(plans, done);
}

}  // namespace sluice
