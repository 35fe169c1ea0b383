// The costs that an Estimator remembers. Threading: a class of calls has a mutex, and an estimate
// that is read without it; the table has another one.
#include "sluice/calls/estimator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "sluice/decide.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

/// Costs below two `steps` have buckets of their own; from there on each power of two has `steps`.
constexpr unsigned step_bits = 4;
constexpr Word steps = Word{1} << step_bits;

std::size_t bucket_of(Word cost) {
  if (cost < steps) return static_cast<std::size_t>(cost);
  const auto shift =
      static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(cost))) - step_bits - 1;
  return static_cast<std::size_t>(shift * steps + (cost >> shift));
}
/// The largest cost in a bucket.
Word top_of(std::size_t bucket) {
  const auto index = static_cast<Word>(bucket);
  if (index < 2 * steps) return index;
  const Word shift = index / steps - 1;
  return ((index - shift * steps + 1) << shift) - 1;
}

void require(bool fine, const char* what, const std::string& value, const char* allowed) {
  if (fine) return;
  throw std::invalid_argument(std::string("EstimatorOptions::") + what + " must be " + allowed +
                              ", got " + value);
}

}  // namespace

namespace detail {

/// The costs of one class, counted in buckets.
class LearnedCosts {
 public:
  explicit LearnedCosts(const EstimatorOptions& options) noexcept : options_(options) {}

  /// Below zero: not known yet.
  [[nodiscard]] Word estimate() const noexcept {
    return estimate_.load(std::memory_order_relaxed);  // a number of its own
  }

  void learn(Word cost) noexcept {
    const std::lock_guard lock(mutex_);
    ++counts_[bucket_of(cost)];
    ++total_;
    if (total_ >= 2 * options_.window) halve();
    if (total_ >= options_.least) known_ = true;
    if (known_) estimate_.store(quantile(), std::memory_order_relaxed);  // see estimate()
  }

 private:
  void halve() noexcept {
    total_ = 0;
    for (std::uint32_t& count : counts_) total_ += count /= 2;
  }
  [[nodiscard]] Word quantile() const noexcept {
    const double rank = std::max(1.0, std::ceil(options_.quantile * static_cast<double>(total_)));
    std::size_t bucket = 0;
    double sum = counts_[0];
    while (sum < rank && bucket + 1 < counts_.size()) sum += counts_[++bucket];
    return std::min(top_of(bucket), LearnedEstimate::max_cost);
  }

  const EstimatorOptions options_;
  std::atomic<Word> estimate_{-1};
  std::mutex mutex_;
  std::array<std::uint32_t, (40 - step_bits) * steps + 2 * steps> counts_{};
  std::size_t total_ = 0;
  bool known_ = false;
};

}  // namespace detail

Cost LearnedEstimate::cost() const noexcept {
  const Word known = costs_->estimate();
  return known < 0 ? unknown_ : Cost(known);
}

void LearnedEstimate::learn(Cost actual) const {
  if (actual.value() < 0 || actual.value() > max_cost) {
    throw detail::failed_with({"LearnedEstimate", "learn"}, Errc::invalid_cost,
                              detail::not_allowed("cost", actual.value(), 0, max_cost));
  }
  costs_->learn(actual.value());
}

/// The classes, the one that was asked for least recently last.
class Estimator::Table {
 public:
  explicit Table(const EstimatorOptions& options) : options_(options) {}

  std::shared_ptr<detail::LearnedCosts> find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(name);
    if (found != places_.end()) {
      classes_.splice(classes_.begin(), classes_, found->second);
      return classes_.front().costs;
    }
    if (classes_.size() == options_.max_classes) forget_last();
    classes_.push_front({std::string(name), std::make_shared<detail::LearnedCosts>(options_)});
    try {
      places_.emplace(classes_.front().name, classes_.begin());
    } catch (...) {
      classes_.pop_front();
      throw;
    }
    return classes_.front().costs;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return classes_.size();
  }

 private:
  struct Class {
    std::string name;
    std::shared_ptr<detail::LearnedCosts> costs;
  };
  void forget_last() {
    places_.erase(classes_.back().name);
    classes_.pop_back();
  }

  const EstimatorOptions options_;
  mutable std::mutex mutex_;
  std::list<Class> classes_;
  std::unordered_map<std::string_view, std::list<Class>::iterator> places_;  // by Class::name
};

Estimator::Estimator(const EstimatorOptions& options) {
  require(options.quantile > 0 && options.quantile <= 1, "quantile",
          std::to_string(options.quantile), "above 0, up to 1");
  require(options.window >= 100 && options.window <= 1'000'000, "window",
          std::to_string(options.window), "100 to 1,000,000");
  require(options.least >= 1 && options.least <= options.window, "least",
          std::to_string(options.least), "1 to the window");
  require(options.max_classes >= 1 && options.max_classes <= 100'000, "max_classes",
          std::to_string(options.max_classes), "1 to 100,000");
  table_ = std::make_unique<Table>(options);
}
Estimator::~Estimator() = default;

LearnedEstimate Estimator::of(std::string_view name, Cost unknown) {
  return {table_->find(name), unknown};
}

std::size_t Estimator::classes() const { return table_->size(); }

}  // namespace sluice
