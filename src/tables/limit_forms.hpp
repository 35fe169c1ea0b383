// What differs between the kinds of limits in a table.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sluice/detail/limit_of.hpp"
#include "sluice/limit_table.hpp"
#include "src/core/unit_text.hpp"
#include "src/limiters/require_windows.hpp"

namespace sluice::detail {

template <class Limit>
struct LimitForm;

template <>
struct LimitForm<Quota> {
  static std::string text(const Quota& quota) { return to_string(quota); }
  static Quota constant(const Quota& /*like*/, Word limit) {
    return limit == 0 ? Quota::never() : Quota::unlimited();
  }
  /// Throws std::invalid_argument if the limit cannot stand beside that of everyone.
  static void check(const Quota& quota, const Quota& /*everyone*/, Span unit) {
    static_cast<void>(quota.counted_in(unit));
  }
  static bool is_compatible(const LimitList<Quota>& a, const LimitList<Quota>& b) {
    return a.unit() == b.unit();
  }
  static constexpr const char* compatible = "the same unit";
};

template <>
struct LimitForm<Word> {
  static constexpr Word most = Word{1} << 40;

  static std::string text(Word limit) {
    return limit == 0 ? "never" : limit == unlimited ? "unlimited" : std::to_string(limit);
  }
  static Word constant(Word /*like*/, Word limit) { return limit; }
  static void check(Word limit, Word /*everyone*/, Span /*unit*/) {
    if (limit == unlimited || (limit >= 0 && limit <= most)) return;
    throw std::invalid_argument("the limit must be 0 to 2^40, or unlimited, got " +
                                std::to_string(limit));
  }
  static bool is_compatible(const LimitList<Word>& /*a*/, const LimitList<Word>& /*b*/) {
    return true;
  }
  static constexpr const char* compatible = "";
};

template <>
struct LimitForm<WindowLimits> {
  static std::string text(const WindowLimits& windows) {
    std::string all;
    for (const auto& [limit, span] : windows) {
      all += (all.empty() ? "" : "+") + LimitForm<Word>::text(limit) + "/" + span_text(span);
    }
    return all;
  }
  static WindowLimits constant(WindowLimits like, Word limit) {
    for (WindowLimit& window : like) window.limit = limit;
    return like;
  }
  static void check(const WindowLimits& windows, const WindowLimits& everyone, Span /*unit*/) {
    require_windows(windows);
    if (have_same_spans(windows, everyone)) return;
    throw std::invalid_argument("the windows must have the spans of everyone's, " + text(everyone) +
                                ", got " + text(windows));
  }
  static bool is_compatible(const LimitList<WindowLimits>& a, const LimitList<WindowLimits>& b) {
    return have_same_spans(a.everyone(), b.everyone());
  }
  static constexpr const char* compatible = "the same spans of windows";
  static bool have_same_spans(const WindowLimits& a, const WindowLimits& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const WindowLimit& x, const WindowLimit& y) { return x.span == y.span; });
  }
};

}  // namespace sluice::detail
