// The leases of one key at one instant, for the kernel in leases.cpp. A walk visits each slot at
// most once, so that corrupt words cannot make it endless. Threading: one object for each decision.
#pragma once

#include <algorithm>
#include <iterator>

#include "sluice/rules/leases.hpp"

namespace sluice {

/// The expired leases, in sum, and the first live one.
struct Lapse {
  Word weight = 0;
  Word count = 0;
  Word first = 0;   ///< 0: nothing lives
  Word expiry = 0;  ///< of the first; 0: it was not read
};

/// The position of a lease in the order of expiry: between these two, 0 for none.
struct LeasePlace {
  Word after;
  Word before;
};

class LeaseTable {
 public:
  using Rule = LeasesRule;

  /// The words of a slot.
  struct Node {
    Word weight;
    Word next;
    Word expiry;
  };
  struct Record {
    Node node;
    Word prev;
    Word id[3];
    Word fence;
  };

  LeaseTable(const StateView& state, Word now, Effects& effects) noexcept
      : state_(state), effects_(effects) {
    Word w[Rule::head_words];
    for (std::size_t i = 0; i < std::size(w); ++i) w[i] = state[i];
    head = {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10]};
    const bool sound = head.slots <= Rule::max_holders && head.first <= head.slots &&
                       head.tail <= head.slots && head.free <= head.slots &&
                       (head.under <= head.slots || head.under == Rule::unread) &&
                       (head.first == 0) == (head.tail == 0) &&
                       (head.first != 0 || (head.used == 0 && head.slots == 0));
    if (!sound) {
      state.call_corrupt();
      head = {};
    }
    base = std::min(now + head.ahead, word_limit);
    stepped = head.stamp > base + Rule::max_ahead;
    if (stepped) {
      head.ahead = head.stamp - now;
      base = head.stamp;
    }
    at = std::max(base, head.stamp);
  }

  [[nodiscard]] Node node(Word slot) const noexcept {
    return {get(slot, Rule::weight), get(slot, Rule::next), get(slot, Rule::expiry)};
  }
  [[nodiscard]] Record record(Word slot) const noexcept {
    return {node(slot),
            get(slot, Rule::prev),
            {get(slot, Rule::id), get(slot, Rule::id + 1), get(slot, Rule::id + 2)},
            get(slot, Rule::fence)};
  }
  [[nodiscard]] Word get(Word slot, Word field) const noexcept {
    return state_[static_cast<std::size_t>(Rule::slot_at(slot) + field)];
  }
  void put(Word slot, Word field, Word value) noexcept {
    effects_.put(static_cast<std::size_t>(Rule::slot_at(slot) + field), value);
  }
  /// A link to another slot, which must exist.
  [[nodiscard]] Word link(Word other) const noexcept {
    if (other >= 1 && other <= head.slots) return other;
    state_.call_corrupt();
    return 1;
  }

  /// The slot of the live lease with this id, 0 if there is none. `slot` is a hint if it is not 0.
  [[nodiscard]] Word find(Word slot, const Word (&id)[3]) const noexcept {
    if (slot != 0) return slot <= head.slots && is_live(record(slot), id) ? slot : 0;
    for (Word i = 1; i <= head.slots; ++i) {
      if (get(i, Rule::id) == id[0] && is_live(record(i), id)) return i;
    }
    return 0;
  }

  [[nodiscard]] bool has_room() const noexcept {
    return head.free != 0 || head.slots < Rule::max_holders;
  }
  [[nodiscard]] bool fits(const Lapse& lapse, Word limit, Word weight) const noexcept {
    return head.used - lapse.weight + weight <= limit && (has_room() || lapse.count > 0);
  }

  /// Counts the expired leases; after the clock was set far back, also those that must be dropped
  /// so that `weight` fits, unless that is 0.
  [[nodiscard]] Lapse lapsed(Word limit, Word weight) const noexcept {
    Lapse lapse{0, 0, head.first, 0};
    const bool evicts = stepped && weight > 0;
    if (head.first == 0 || (at < head.earliest && !evicts)) return lapse;
    if (at >= head.latest) return {head.used, head.slots, 0, 0};
    Node first = node(head.first);
    lapse.expiry = first.expiry;
    while (lapse.first != 0 && (first.expiry <= at || (evicts && !fits(lapse, limit, weight)))) {
      pass(lapse, first);
    }
    return lapse;
  }

  /// The time until the last live lease expires.
  [[nodiscard]] Word reset_after(const Lapse& lapse) const noexcept {
    if (lapse.first == 0) return 0;
    const Word last = get(head.tail, Rule::expiry);
    if (last <= at) state_.call_corrupt();
    return std::max(Word{0}, last - base);
  }
  [[nodiscard]] Word remaining(const Lapse& lapse, Word limit) const noexcept {
    if (!has_room() && lapse.count == 0) return 0;
    return std::max(Word{0}, limit - (head.used - lapse.weight));
  }

  [[nodiscard]] Verdict granted(const Lapse& lapse, Word limit) const noexcept {
    return {Verdict::allowed, remaining(lapse, limit), 0, reset_after(lapse)};
  }
  [[nodiscard]] Verdict refused(Lapse lapse, Word limit, Word weight) const noexcept {
    const Word left = remaining(lapse, limit);
    const Word reset = reset_after(lapse);
    Word until = base;
    Node first = lapse.first == 0 ? Node{} : node(lapse.first);
    while (lapse.first != 0 && !fits(lapse, limit, weight)) {
      until = first.expiry;
      if (until <= at) state_.call_corrupt();
      pass(lapse, first);
    }
    return {Verdict::refused, left, std::max(Word{0}, until - base), reset};
  }

  /// Removes all leases.
  void clear() noexcept { head = {.stamp = head.stamp, .ahead = head.ahead, .fence = head.fence}; }

  /// Removes expired leases from the list for reuse; `lapse` is then the rest of them.
  void reclaim(Lapse& lapse) noexcept {
    if (lapse.first == 0) {
      lapse = {};
      return clear();
    }
    if (lapse.expiry != 0) head.earliest = lapse.expiry;
    const Word count = std::min(lapse.count, Rule::max_reclaimed);
    if (count == 0) return;
    const Word under = head.free;
    Word slot = head.first;
    head.free = slot;
    head.under = under;
    for (Word i = 1; i <= count; ++i) {
      const Node taken = node(slot);
      put(slot, Rule::weight, 0);
      head.used -= taken.weight;
      lapse.weight -= taken.weight;
      if (i == count) put(slot, Rule::next, under);
      slot = link(taken.next);
      if (i == 1 && count > 1) head.under = slot;
    }
    head.first = slot;
    lapse.count -= count;
    if (lapse.count > 0) head.earliest = 0;
  }

  /// Takes a free slot.
  [[nodiscard]] Word pop() noexcept {
    if (head.free == 0) return ++head.slots;
    const Word slot = head.free;
    head.free = head.under == Rule::unread ? get(slot, Rule::next) : head.under;
    if (head.free > head.slots) state_.call_corrupt();
    head.under = head.free == 0 ? 0 : Rule::unread;
    return slot;
  }
  void push(Word slot) noexcept {
    put(slot, Rule::weight, 0);
    put(slot, Rule::next, head.free);
    head.under = head.free;
    head.free = slot;
  }

  /// The position of `expiry` in the order, after equal ones; stops at `self`, if that comes first.
  /// Afterwards head.latest is the last expiry.
  [[nodiscard]] LeasePlace place(Word expiry, Word self) noexcept {
    LeasePlace place{head.tail, 0};
    if (head.first == 0 || expiry >= head.latest) {
      head.latest = expiry;
      return place;
    }
    Word other = get(place.after, Rule::expiry);
    head.latest = std::max(other, expiry);
    for (Word i = 0; place.after != 0 && place.after != self && other > expiry; ++i) {
      if (i == head.slots) {
        state_.call_corrupt();
        break;
      }
      place.before = place.after;
      place.after = place.after == head.first ? 0 : link(get(place.after, Rule::prev));
      if (place.after != 0) other = get(place.after, Rule::expiry);
    }
    return place;
  }
  /// Points the neighbours at `slot`.
  void join(Word slot, const LeasePlace& place, Word expiry) noexcept {
    if (place.after != 0) {
      put(place.after, Rule::next, slot);
    } else {
      head.first = slot;
      head.earliest = expiry;
    }
    if (place.before != 0) {
      put(place.before, Rule::prev, slot);
    } else {
      head.tail = slot;
    }
  }
  /// Points the neighbours at each other. REQUIRES: there is one.
  void unlink(Word slot, const Record& record) noexcept {
    if (slot == head.first) {
      head.first = link(record.node.next);
    } else if (slot == head.tail) {
      head.tail = link(record.prev);
    } else {
      const LeasePlace around{link(record.prev), link(record.node.next)};
      put(around.after, Rule::next, around.before);
      put(around.before, Rule::prev, around.after);
    }
  }

  void write() noexcept {
    const Word words[]{head.used, at,        head.ahead, head.fence,    head.slots, head.first,
                       head.tail, head.free, head.under, head.earliest, head.latest};
    for (std::size_t i = 0; i < std::size(words); ++i) effects_.put(i, words[i]);
  }

  void call_corrupt() const noexcept { state_.call_corrupt(); }

  Rule::Head head;
  Word base;     ///< the clock's instant in the state's time
  Word at;       ///< the instant that the rule sees: never before the stamp
  bool stepped;  ///< the clock was set back by more than max_ahead

 private:
  [[nodiscard]] bool is_live(const Record& r, const Word (&id)[3]) const noexcept {
    return r.id[0] == id[0] && r.id[1] == id[1] && r.id[2] == id[2] && r.node.weight > 0 &&
           r.node.expiry > at;
  }

  /// Adds the first live lease, with these words, to the expired ones.
  void pass(Lapse& lapse, Node& first) const noexcept {
    const Word held = head.used - lapse.weight;
    const bool last = lapse.first == head.tail;
    if (first.weight == 0 || first.weight > held || (first.weight == held) != last ||
        lapse.count == head.slots) {
      state_.call_corrupt();
      lapse.first = 0;
      return;
    }
    lapse.weight += first.weight;
    ++lapse.count;
    lapse.first = last ? 0 : link(first.next);
    if (!last) first = node(lapse.first);
    lapse.expiry = last ? 0 : first.expiry;
  }

  const StateView& state_;
  Effects& effects_;
};

}  // namespace sluice
