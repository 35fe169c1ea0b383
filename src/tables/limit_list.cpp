// Building a list of limits, and comparing two.
#include <string>
#include <vector>

#include "sluice/detail/nearest.hpp"
#include "sluice/key.hpp"
#include "sluice/limit_table.hpp"
#include "src/tables/limit_forms.hpp"
#include "src/util/quoted.hpp"

namespace sluice {
namespace {

using detail::LimitForm;
using detail::quoted;

/// In bytes.
constexpr std::size_t longest_compared = 64;

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

std::string valid(const char* what, std::string_view text) {
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

}  // namespace

template <class Limit>
LimitList<Limit>::LimitList(Limit everyone, SpanArg unit)
    : everyone_(std::move(everyone)), unit_(unit) {
  constexpr Span longest{std::chrono::hours{24}};
  if (std::same_as<Limit, Quota> && (unit_ < Span{1} || unit_ > longest || !unit.is_exact())) {
    reject("the unit of a table of quotas must be 1 us to 1 day, in whole microseconds, got " +
           std::to_string(unit_.count()) + " us");
  }
  check("everyone", everyone_);
}

template <class Limit>
void LimitList<Limit>::check(const std::string& whose, const Limit& limit) const {
  try {
    LimitForm<Limit>::check(limit, everyone_, unit_);
  } catch (const std::invalid_argument& error) {
    reject(whose + ": " + error.what());
  }
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::tier(detail::TextArg name, Limit limit) {
  const std::string which = "tier " + quoted(name);
  std::string own = valid("tier", name);
  check(which, limit);
  if (const auto there = tiers_.find(own); there != tiers_.end()) {
    reject(which + " stands twice: with " + LimitForm<Limit>::text(there->second) + " and with " +
           LimitForm<Limit>::text(limit));
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
    const bool is_long = tier.view().size() > longest_compared;
    const std::string_view near = is_long ? "" : detail::nearest(tier.view(), names);
    reject("key " + quoted(key) + ": there is no tier " + quoted(tier) +
           (near.empty() ? "" : "; did you mean " + quoted(near) + "?"));
  }
  return add(key, {there->first, there->second});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::limit(detail::TextArg key, Limit limit) {
  check("key " + quoted(key), limit);
  return add(key, {"", std::move(limit)});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::allow(detail::TextArg key) {
  return add(key, {"", LimitForm<Limit>::constant(everyone_, unlimited)});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::deny(detail::TextArg key) {
  return add(key, {"", LimitForm<Limit>::constant(everyone_, 0)});
}

template <class Limit>
LimitList<Limit>& LimitList<Limit>::add(detail::TextArg key, Row row) {
  std::string own = valid("key", key);
  if (const auto there = rows_.find(own); there != rows_.end()) {
    reject("key " + quoted(key) + " stands twice: with " + text_of<Limit>(there->second) +
           " and with " + text_of<Limit>(row));
  }
  rows_.emplace(std::move(own), std::move(row));
  return *this;
}

template <class Limit>
std::vector<std::string> difference(const LimitList<Limit>& from, const LimitList<Limit>& to) {
  using Form = LimitForm<Limit>;
  std::vector<std::string> lines;
  if (from.unit() != to.unit()) {
    lines.push_back("unit: " + detail::span_text(from.unit()) + " -> " +
                    detail::span_text(to.unit()));
  }
  const std::string was = Form::text(from.everyone());
  const std::string is = Form::text(to.everyone());
  if (was != is) lines.push_back("everyone: " + was + " -> " + is);
  compare(from.tiers(), to.tiers(), "tier ", "none", Form::text, lines);
  compare(from.rows(), to.rows(), "key ", "as everyone", text_of<Limit>, lines);
  return lines;
}

template class LimitList<Quota>;
template class LimitList<Word>;
template class LimitList<WindowLimits>;
template std::vector<std::string> difference(const LimitList<Quota>&, const LimitList<Quota>&);
template std::vector<std::string> difference(const LimitList<Word>&, const LimitList<Word>&);
template std::vector<std::string> difference(const LimitList<WindowLimits>&,
                                             const LimitList<WindowLimits>&);

}  // namespace sluice
