// Building a list of limits, and comparing two: templates, which one file for each kind of limit
// instantiates, so that a program links the kinds that it uses.
#pragma once

#include <string>
#include <vector>

#include "sluice/key.hpp"
#include "sluice/limit_table.hpp"
#include "src/tables/limit_forms.hpp"
#include "src/util/nearest.hpp"
#include "src/util/quoted.hpp"

namespace sluice {
namespace detail::tables {

/// In bytes.
inline constexpr std::size_t longest_compared = 64;

[[noreturn]] inline void reject(const std::string& what) { throw std::invalid_argument(what); }

inline std::string valid(const char* what, std::string_view text) {
  if (text.empty() || text.size() > Key::max_part_bytes) {
    reject(std::string("the name of a ") + what + " must be 1 byte to 1 MiB long, got " +
           std::to_string(text.size()) + " bytes");
  }
  return std::string(text);
}

template <class Limit>
std::string text_of(const typename LimitList<Limit>::Row& row) {
  return row.tier.empty() ? LimitForm<Limit>::text(row.limit) : "tier " + quoted(row.tier);
}

/// The tiers of a list, or the rows, with what is shown of each.
template <class Map, class Text>
void compare(const Map& from, const Map& to, const std::string& what, const std::string& absent,
             const Text& text, std::vector<std::string>& lines) {
  const auto line = [&](const std::string& name, const std::string& was, const std::string& is) {
    lines.push_back(what + quoted(name) + ": " + was + " -> " + is);
  };
  auto old = from.begin();
  auto now = to.begin();
  while (old != from.end() || now != to.end()) {
    if (now == to.end() || (old != from.end() && old->first < now->first)) {
      line(old->first, text(old->second), absent);
      ++old;
    } else if (old == from.end() || now->first < old->first) {
      line(now->first, absent, text(now->second));
      ++now;
    } else {
      const std::string was = text(old->second);
      const std::string is = text(now->second);
      if (was != is) line(old->first, was, is);
      ++old;
      ++now;
    }
  }
}

}  // namespace detail::tables

template <class Limit>
LimitList<Limit>::LimitList(Limit everyone, SpanArg unit)
    : everyone_(std::move(everyone)), unit_(unit) {
  constexpr Span longest{std::chrono::hours{24}};
  if (std::same_as<Limit, Quota> && (unit_ < Span{1} || unit_ > longest || !unit.is_exact())) {
    detail::tables::reject(
        "the unit of a table of quotas must be 1 us to 1 day, in whole microseconds, got " +
        std::to_string(unit_.count()) + " us");
  }
  check("everyone", everyone_);
}

template <class Limit>
void LimitList<Limit>::check(const std::string& whose, const Limit& limit) const {
  try {
    detail::LimitForm<Limit>::check(limit, everyone_, unit_);
  } catch (const std::invalid_argument& error) {
    detail::tables::reject(whose + ": " + error.what());
  }
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::tier(detail::TextArg name, Limit limit) {
  const std::string which = "tier " + detail::quoted(name);
  std::string own = detail::tables::valid("tier", name);
  check(which, limit);
  if (const auto there = tiers_.find(own); there != tiers_.end()) {
    detail::tables::reject(which + " stands twice: with " +
                           detail::LimitForm<Limit>::text(there->second) + " and with " +
                           detail::LimitForm<Limit>::text(limit));
  }
  tiers_.emplace(std::move(own), std::move(limit));
  return *this;
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::assign(detail::TextArg key, detail::TextArg tier) {
  const auto there = tiers_.find(tier.view());
  if (there == tiers_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, limit] : tiers_) names.push_back(name);
    const bool is_long = tier.view().size() > detail::tables::longest_compared;
    const std::string_view near = is_long ? "" : detail::nearest(tier.view(), names);
    detail::tables::reject("key " + detail::quoted(key) + ": there is no tier " +
                           detail::quoted(tier) +
                           (near.empty() ? "" : "; did you mean " + detail::quoted(near) + "?"));
  }
  return add(key, {there->first, there->second});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::limit(detail::TextArg key, Limit limit) {
  check("key " + detail::quoted(key), limit);
  return add(key, {"", std::move(limit)});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::allow(detail::TextArg key) {
  return add(key, {"", detail::LimitForm<Limit>::constant(everyone_, unlimited)});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::deny(detail::TextArg key) {
  return add(key, {"", detail::LimitForm<Limit>::constant(everyone_, 0)});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::add(detail::TextArg key, Row row) {
  std::string own = detail::tables::valid("key", key);
  if (const auto there = rows_.find(own); there != rows_.end()) {
    detail::tables::reject("key " + detail::quoted(key) + " stands twice: with " +
                           detail::tables::text_of<Limit>(there->second) + " and with " +
                           detail::tables::text_of<Limit>(row));
  }
  rows_.emplace(std::move(own), std::move(row));
  return *this;
}

template <class Limit>
std::vector<std::string> difference(const LimitList<Limit>& from, const LimitList<Limit>& to) {
  using Form = detail::LimitForm<Limit>;
  std::vector<std::string> lines;
  if (from.unit() != to.unit()) {
    lines.push_back("unit: " + detail::span_text(from.unit()) + " -> " +
                    detail::span_text(to.unit()));
  }
  const std::string was = Form::text(from.everyone());
  const std::string is = Form::text(to.everyone());
  if (was != is) lines.push_back("everyone: " + was + " -> " + is);
  detail::tables::compare(from.tiers(), to.tiers(), "tier ", "none", Form::text, lines);
  detail::tables::compare(from.rows(), to.rows(), "key ", "as everyone",
                          detail::tables::text_of<Limit>, lines);
  return lines;
}

}  // namespace sluice
