// Whose call waits, and since when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/wait_options.hpp"

namespace sluice::detail {

/// When a call came. It keeps this in whatever queue it waits.
struct Arrival {
  Word at = 0;                 ///< by the clock of the wait
  std::uint64_t sequence = 0;  ///< among all calls of this process
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// Of a call that comes now, and the first of so many.
[[nodiscard]] Arrival new_arrival(const Clock& clock, std::size_t count = 1) noexcept;

/// Whose call it is: what its order in a queue depends on, beside its arrival. See WaitOptions.
struct Caller {
  int priority = 0;
  std::string flow{};
  int weight = 1;

  /// `options`: WaitOptions, or what has the same members.
  template <class Options>
  [[nodiscard]] static Caller of(const Options& options) {
    return {options.priority, std::string(options.flow), options.weight};
  }
  [[nodiscard]] bool is_valid() const noexcept {
    return WaitOptions{priority, flow, weight}.is_valid();
  }
};

}  // namespace sluice::detail
