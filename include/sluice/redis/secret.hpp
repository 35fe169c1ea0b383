// Secret: a password that cannot be logged by accident.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "sluice/detail/cxx20.hpp"

namespace sluice {

/// A password. Not printable, not comparable; its memory is wiped when it is destroyed.
class Secret {
 public:
  Secret() = default;
  Secret(std::string value) noexcept : value_(std::move(value)) {}  // NOLINT: converts
  /// A null pointer is an empty secret.
  Secret(const char* value) : value_(value != nullptr ? value : "") {}  // NOLINT: converts
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : value_(std::move(other.value_)) { other.wipe(); }
  Secret& operator=(Secret other) noexcept {
    value_.swap(other.value_);
    return *this;
  }
  ~Secret() { wipe(); }

  [[nodiscard]] bool empty() const noexcept { return value_.empty(); }
  /// The secret itself, for the login.
  [[nodiscard]] std::string_view reveal() const noexcept { return value_; }

 private:
  void wipe() noexcept {
    volatile char* bytes = value_.data();
    for (std::size_t i = 0; i < value_.size(); ++i) bytes[i] = 0;
    value_.clear();
  }

  std::string value_;
};

}  // namespace sluice
