// The rates of keys as a shared sliding window has last read them. Threading: a Rate is immutable,
// and Rates is thread-safe.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/limiters/shared_sliding_window.hpp"

namespace sluice {

/// A configuration that was read, and its log.
struct SharedSlidingWindow::Rate {
  std::string tag;  // of the key
  std::string name;
  RateConfiguration setting{};  // version 0: it was not read yet
  Word generation = 0;          // of the log
  Word first_end = 0;           // of the kept windows; zero: there are none
  std::string log{};            // its name
  std::vector<Word> table{};    // of the windows
  Word longest = 0;             // how long a unit is kept

  [[nodiscard]] Key key() const noexcept { return {tag, name}; }
  /// Whether a request of so many units can be decided; a rate of 0 refuses it.
  [[nodiscard]] bool decides(Word units) const noexcept {
    return setting.rate == 0 || units <= setting.rate;
  }
};

class SharedSlidingWindow::Rates {
 public:
  /// Of so many keys. Another one takes the place of any.
  static constexpr std::size_t max_keys = 1024;

  /// `address`: the limiter's store, of which only the address is used.
  Rates(const Store& address, SharedSlidingWindowOptions options)
      : store_(&address), options_(std::move(options)) {}

  [[nodiscard]] const SharedSlidingWindowOptions& options() const noexcept { return options_; }
  /// The remembered rate of a key, or null.
  [[nodiscard]] std::shared_ptr<const Rate> of(const Key& key) const noexcept;
  /// Remembers what a read_step() has found.
  [[nodiscard]] std::shared_ptr<const Rate> remember(const Key& key, std::span<const Word> output,
                                                     std::error_code& error) const noexcept;

  [[nodiscard]] Step read_step(const Key& key) const noexcept;
  /// The two steps of a request. `asked` is the one of the log; here it gets its key, its table and
  /// the arguments that depend on the rate. Views of `rate`.
  [[nodiscard]] std::array<Step, 2> steps(const Rate& rate, const Step& asked) const noexcept;
  /// For exceptions: what has failed before the step of the log was decided.
  [[nodiscard]] Step failed_step(const std::error_code& error, Step asked) const noexcept;
  [[nodiscard]] std::string log_name(std::string_view name, Word generation, RateType type) const;

 private:
  struct ByKey {
    using is_transparent = void;
    using Parts = std::pair<std::string_view, std::string_view>;
    static Parts parts(const Key& key) noexcept { return {key.tag(), key.name()}; }
    static Parts parts(const std::shared_ptr<const Rate>& rate) noexcept {
      return {rate->tag, rate->name};
    }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      return parts(a) < parts(b);
    }
  };

  const Store* store_;
  SharedSlidingWindowOptions options_;
  mutable std::mutex mutex_;
  mutable std::set<std::shared_ptr<const Rate>, ByKey> rates_;  // guarded by mutex_
};

}  // namespace sluice
