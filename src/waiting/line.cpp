#include "src/waiting/line.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sluice::detail {
namespace {

/// Of two virtual times; they wrap around.
bool is_before(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(a - b) < 0;
}

std::uint64_t later(std::uint64_t a, std::uint64_t b) noexcept { return is_before(a, b) ? b : a; }

// So that virtual times do not overflow.
constexpr Word most_units = Word{1} << 32;

/// Virtual time. Exact to 0.1 % at the largest weight.
std::uint64_t length(Word units, Word weight) noexcept {
  constexpr Word scale = Word{1} << 20;
  return static_cast<std::uint64_t>(units * scale / weight);
}

}  // namespace

bool Line::Earlier::operator()(const Flow* a, const Flow* b) const noexcept {
  return a->end != b->end ? is_before(a->end, b->end) : a->first < b->first;
}

std::size_t Line::index_of(const Place& place) noexcept {
  return static_cast<std::size_t>(place.priority - WaitOptions::lowest_priority);
}

const Line::Entry& Line::entry(const Place& place) const noexcept {
  return classes_[index_of(place)].entries.find(place.number)->second;
}
Line::Entry& Line::entry(const Place& place) noexcept {
  return class_of(place).entries.find(place.number)->second;
}

bool Line::any_below(std::size_t index) const noexcept {
  return std::any_of(classes_.begin(), classes_.begin() + static_cast<std::ptrdiff_t>(index),
                     [](const Class& lower) { return lower.waiting > 0; });
}

/// Before its first request or that one's end changes.
void Line::take_out_of_order(Class& its, Flow& flow) noexcept {
  if (flow.unordered.empty()) flow.unordered = its.order.extract(&flow);
}

void Line::put_in_order(Class& its, Flow& flow) noexcept {
  const auto first = std::find_if(flow.entries.begin(), flow.entries.end(), [](const auto& each) {
    return !each.second->is_taken && !each.second->has_turn;
  });
  if (first == flow.entries.end()) return;
  flow.first = first->first;
  flow.end = flow.begin + length(first->second->units, flow.weight);
  its.order.insert(std::move(flow.unordered));
}

void Line::insert(const Request& request) {
  Class& its = class_of(request.place);
  const std::uint64_t number = request.place.number;
  // Everything is allocated first.
  decltype(Class::entries) entry;
  decltype(Flow::entries) member;
  decltype(Class::flows) named;
  Order ordered;
  Entry& fresh = entry[number];
  if (request.keeps_turns) {
    Turns turn{{number, request.place}};
    fresh.turn = turn.extract(turn.begin());
  }
  member.emplace(number, &fresh);
  auto found = its.flows.find(request.flow);
  const bool is_new = found == its.flows.end();
  if (is_new) ordered.insert(&named[std::string(request.flow)]);

  if (is_new) {
    found = its.flows.insert(named.extract(named.begin())).position;
    found->second.name = &found->first;
    found->second.unordered = ordered.extract(ordered.begin());
  }
  Flow& flow = found->second;
  take_out_of_order(its, flow);
  const bool was_idle = std::all_of(flow.entries.begin(), flow.entries.end(), [](const auto& each) {
    return each.second->is_taken || each.second->has_turn;
  });
  if (was_idle) flow.begin = is_new ? its.now : later(flow.begin, its.now);
  flow.weight = request.weight;
  flow.certain += request.certain;
  fresh.flow = &flow;
  fresh.units = std::clamp<Word>(request.units, 1, most_units);
  fresh.certain = request.certain;
  its.entries.insert(entry.extract(entry.begin()));
  flow.entries.insert(member.extract(member.begin()));
  put_in_order(its, flow);
  count_waiting(index_of(request.place), true);
  if (request.has_turn) keep_turn(request.place);
}

void Line::keep_turn(const Place& place) noexcept {
  Class& its = class_of(place);
  Entry& kept = entry(place);
  if (std::exchange(kept.has_turn, true)) return;
  take_out_of_order(its, *kept.flow);
  put_in_order(its, *kept.flow);
  turns_.insert(std::move(kept.turn));
}

void Line::remove(const Place& place) noexcept {
  Class& its = class_of(place);
  turns_.erase(place.number);
  const auto found = its.entries.find(place.number);
  Flow& flow = *found->second.flow;
  flow.certain -= found->second.certain;
  flow.entries.erase(place.number);
  its.entries.erase(found);
  if (flow.entries.empty()) {
    its.flows.erase(its.flows.find(*flow.name));
  } else if (!flow.unordered.empty()) {
    put_in_order(its, flow);
  }
}

void Line::erase(const Place& place) noexcept {
  if (entry(place).is_taken) put_back(place);
  take_out_of_order(class_of(place), *entry(place).flow);
  count_waiting(index_of(place), false);
  remove(place);
}

void Line::grant(const Place& place) noexcept {
  Class& its = class_of(place);
  const Entry& granted = entry(place);
  its.now = later(its.now, granted.end);
  for (std::size_t above = index_of(place) + 1; above < classes_.size(); ++above) {
    // What they were granted while nobody waited above them is theirs as well.
    if (granted.is_share_of[above]) continue;
    Word& earned = classes_[above].earned;
    earned = std::max<Word>(0, earned - price(granted.units));
  }
  remove(place);
}

std::optional<Line::Place> Line::first() const noexcept {
  if (turns_.empty()) return first_without_turn();
  const Place& kept = turns_.begin()->second;
  const Flow& flow = *entry(kept).flow;
  const bool is_older = flow.unordered.empty() && flow.first < kept.number;
  return is_older ? Place{kept.priority, flow.first} : kept;
}

std::optional<Line::Place> Line::first_without_turn() const noexcept {
  std::optional<Place> first;
  Word units = 0;
  for (std::size_t index = 0; index < classes_.size(); ++index) {
    const Class& its = classes_[index];
    if (its.order.empty() || (first && its.earned >= price(units))) continue;
    const Flow& flow = **its.order.begin();
    first = place_at(index, flow.first);
    units = flow.entries.find(flow.first)->second->units;
  }
  return first;
}

bool Line::would_be_first(const Request& request) {
  insert(request);
  const bool is_first = first() == request.place;
  erase(request.place);
  return is_first;
}

Line::Place Line::take_first() noexcept {
  const Place place = *first();
  Class& its = class_of(place);
  Entry& taken = entry(place);
  Flow& flow = *taken.flow;
  charge_classes(index_of(place), taken);
  take_out_of_order(its, flow);
  taken.is_taken = true;
  taken.charge = length(taken.units, flow.weight);
  taken.end = flow.begin + taken.charge;
  flow.begin = taken.end;
  if (taken.has_turn) taken.turn = turns_.extract(place.number);
  put_in_order(its, flow);
  count_waiting(index_of(place), false);
  return place;
}

void Line::put_back(const Place& place) noexcept {
  Class& its = class_of(place);
  Entry& refused = entry(place);
  Flow& flow = *refused.flow;
  take_out_of_order(its, flow);
  refused.is_taken = false;
  if (refused.has_turn) turns_.insert(std::move(refused.turn));
  flow.begin -= refused.charge;
  put_in_order(its, flow);
  count_waiting(index_of(place), true);
  uncharge_classes(index_of(place), refused);
}

/// What nobody waits for is not earned.
void Line::count_waiting(std::size_t index, bool more) noexcept {
  if (more) {
    ++classes_[index].waiting;
    return;
  }
  --classes_[index].waiting;
  for (std::size_t above = index + 1; above < classes_.size(); ++above) {
    if (!any_below(above)) classes_[above].earned = 0;
  }
}

void Line::charge_classes(std::size_t index, Entry& entry) noexcept {
  entry.is_earned_by = any_below(index);
  if (entry.is_earned_by) {
    classes_[index].last_earned = entry.units * share_;
    classes_[index].earned += entry.units * share_;
  }
  for (std::size_t above = index + 1; above < classes_.size(); ++above) {
    Class& higher = classes_[above];
    entry.is_share_of[above] = higher.waiting > 0;
    if (higher.waiting == 0) continue;
    // What was earned for a larger request that has left is not theirs.
    higher.earned = std::min(higher.earned - price(entry.units), higher.last_earned);
  }
}

void Line::uncharge_classes(std::size_t index, Entry& entry) noexcept {
  if (entry.is_earned_by) {
    Word& earned = classes_[index].earned;
    earned = std::max<Word>(0, earned - entry.units * share_);
  }
  for (std::size_t above = index + 1; above < classes_.size(); ++above) {
    if (entry.is_share_of[above]) classes_[above].earned += price(entry.units);
  }
}

std::optional<Line::Place> Line::oldest() const noexcept {
  for (std::size_t index = classes_.size(); index-- > 0;) {
    if (classes_[index].waiting == 0) continue;
    for (const auto& [number, entry] : classes_[index].entries) {
      if (!entry.is_taken) return place_at(index, number);
    }
  }
  return std::nullopt;
}

std::vector<Line::Turn> Line::order() const {
  // Whoever is older in its flow is served before one that keeps its turn.
  std::map<std::uint64_t, std::uint64_t> turns;  // that of each, by arrival
  for (const auto& [turn, kept] : turns_) {
    for (const auto& [number, each] : entry(kept).flow->entries) {
      if (number <= turn) turns.emplace(number, turn);
    }
  }
  enum Rank : std::uint8_t { taken, in_turn, other };
  struct Ranked {
    std::tuple<Rank, std::uint64_t, int> rank;  // ..., its turn, its class from above
    std::uint64_t end;                          // in virtual time
    Turn turn;
  };
  std::vector<Ranked> all;
  for (std::size_t index = 0; index < classes_.size(); ++index) {
    for (const auto& [name, flow] : classes_[index].flows) {
      std::uint64_t end = flow.begin;
      Word before = 0;
      for (const auto& [number, each] : flow.entries) {
        const auto turn = turns.find(number);
        const Rank rank = each->is_taken ? taken : turn != turns.end() ? in_turn : other;
        if (rank != taken) end += length(each->units, flow.weight);
        all.push_back({{rank, rank == in_turn ? turn->second : 0, -static_cast<int>(index)},
                       rank == other ? end : 0,
                       {place_at(index, number), before}});
        before += each->certain;
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.end != b.end ? is_before(a.end, b.end) : a.turn.place.number < b.turn.place.number;
  });
  std::vector<Turn> order;
  order.reserve(all.size());
  for (const Ranked& each : all) order.push_back(each.turn);
  return order;
}

std::optional<Word> Line::units_before_last(const Place& place) const noexcept {
  const Entry& last = entry(place);
  const Flow& flow = *last.flow;
  if (flow.entries.rbegin()->first != place.number) return std::nullopt;
  return flow.certain - last.certain;
}

}  // namespace sluice::detail
