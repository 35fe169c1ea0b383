// The order in which the callers of one queue are served. Pure: no waiters, no clock, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/time.hpp"
#include "sluice/wait_options.hpp"

namespace sluice::detail {

/// Classes by priority, in each class flows, in each flow the order of arrival.
///
/// Flows share by self-clocked fair queueing. In the virtual time of its class a request takes its
/// units, divided by the weight of its flow. It begins when the request before it in its flow ends,
/// or, if there was none, when the last one ended that was granted in its class; the earliest end
/// is first. So an idle flow collects no credit, a request that leaves costs its flow nothing, and
/// each grant brings those who wait nearer than those who come later. Virtual times wrap around:
/// only differences count, which stay below 2^58.
///
/// Between a class and all lower ones, the higher is first until it was granted so much that the
/// share of the lower ones is as large as their first request.
///
/// A request for which the store is asked is taken out of the order, and charged in advance.
///
/// Each operation takes O(log n) and, while k requests are taken, O(k).
class Line {
 public:
  struct Place {
    int priority = 0;
    std::uint64_t number = 0;  ///< the order of arrival, unique
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Request {
    Place place;
    std::string_view flow{};
    Word weight = 1;           ///< of the flow, from now on
    Word units = 1;            ///< 1 to 2^32; others count as the nearest of these
    Word certain = 1;          ///< units that those behind it surely wait for
    bool keeps_turns = false;  ///< keep_turn() may follow
    bool has_turn = false;     ///< it has kept its turn
  };

  /// The percentage for lower classes while they wait.
  void set_lower_share(int percent) noexcept { share_ = percent; }
  /// If it throws std::bad_alloc, nothing has changed. REQUIRES: a new place.
  void insert(const Request& request);
  /// Its flow is before all that have no turn; among several, that of the oldest. REQUIRES: its
  /// request said that this may follow.
  void keep_turn(const Place& place) noexcept;
  /// A request leaves; the charge of one that is taken returns. REQUIRES: it is in the line.
  void erase(const Place& place) noexcept;

  /// The next of those that are not taken.
  [[nodiscard]] std::optional<Place> first() const noexcept;
  /// The first of those that have no turn.
  [[nodiscard]] std::optional<Place> first_without_turn() const noexcept;
  /// Whether the request would be the first. May throw std::bad_alloc.
  [[nodiscard]] bool would_be_first(const Request& request);
  /// REQUIRES: there is a first one.
  Place take_first() noexcept;
  /// REQUIRES, here and below: it is taken.
  void put_back(const Place& place) noexcept;
  /// Its charge stands, and it leaves.
  void grant(const Place& place) noexcept;

  /// The oldest of the highest class, of those that are not taken.
  [[nodiscard]] std::optional<Place> oldest() const noexcept;
  /// Of a lower class, or younger.
  [[nodiscard]] static bool is_behind(const Place& place, const Place& other) noexcept {
    return place.priority != other.priority ? place.priority < other.priority
                                            : place.number > other.number;
  }
  /// The units that are surely granted before the last request of a flow; none if it is not the
  /// last.
  [[nodiscard]] std::optional<Word> units_before_last(const Place& place) const noexcept;
  /// Calls `is_found(place, units)` for each request, in each flow in order of arrival, with the
  /// units that are surely granted before it, until it is true. O(n).
  template <class IsFound>
  void find_in_flows(IsFound&& is_found) const;
  /// A request, and the units that are surely granted before it.
  struct Turn {
    Place place;
    Word before = 0;
  };
  /// All requests in the order in which they are served if nobody comes or leaves, but for the
  /// share of lower classes: these are behind all higher ones. Those that are taken come first. O(n
  /// log n). May throw std::bad_alloc.
  [[nodiscard]] std::vector<Turn> order() const;

 private:
  using Turns = std::map<std::uint64_t, Place>;  // by arrival

  struct Flow;
  struct Entry {
    Flow* flow = nullptr;
    Word units = 1;
    Word certain = 1;
    bool is_taken = false;
    bool has_turn = false;
    Turns::node_type turn{};  // while it is not in turns_
    // Taken:
    std::uint64_t charge = 0;   // to its flow
    std::uint64_t end = 0;      // in virtual time
    bool is_earned_by = false;  // lower classes waited, and have earned a share of it
    std::array<bool, WaitOptions::priorities> is_share_of{};  // those that waited above it
  };
  struct Earlier {
    bool operator()(const Flow* a, const Flow* b) const noexcept;
  };
  using Order = std::set<Flow*, Earlier>;
  struct Flow {
    const std::string* name = nullptr;
    Word weight = 1;
    Word certain = 0;                           // of all its requests
    std::map<std::uint64_t, Entry*> entries{};  // by arrival
    std::uint64_t begin = 0;                    // of its next request
    std::uint64_t first = 0;                    // the request that is not taken and first, if any
    std::uint64_t end = 0;                      // ... of that
    Order::node_type unordered{};               // while it has none
  };
  struct Class {
    std::map<std::string, Flow, std::less<>> flows{};
    Order order{};                             // of the flows that have a first request
    std::map<std::uint64_t, Entry> entries{};  // by arrival
    std::size_t waiting = 0;                   // not taken
    std::uint64_t now = 0;                     // virtual time
    Word earned = 0;                           // by lower classes, in hundredths of units
    Word last_earned = 0;                      // ... by the last request of this class
  };

  [[nodiscard]] static std::size_t index_of(const Place& place) noexcept;
  [[nodiscard]] static Place place_at(std::size_t index, std::uint64_t number) noexcept {
    return {static_cast<int>(index) + WaitOptions::lowest_priority, number};
  }
  [[nodiscard]] Class& class_of(const Place& place) noexcept { return classes_[index_of(place)]; }
  [[nodiscard]] Entry& entry(const Place& place) noexcept;
  [[nodiscard]] const Entry& entry(const Place& place) const noexcept;
  [[nodiscard]] bool any_below(std::size_t index) const noexcept;
  [[nodiscard]] Word price(Word units) const noexcept { return units * (100 - share_); }
  static void take_out_of_order(Class& its, Flow& flow) noexcept;
  static void put_in_order(Class& its, Flow& flow) noexcept;
  void count_waiting(std::size_t index, bool more) noexcept;
  void charge_classes(std::size_t index, Entry& entry) noexcept;
  void uncharge_classes(std::size_t index, Entry& entry) noexcept;
  void remove(const Place& place) noexcept;

  std::array<Class, WaitOptions::priorities> classes_{};
  Turns turns_;  // of those that have one and are not taken
  int share_ = 0;
};

template <class IsFound>
void Line::find_in_flows(IsFound&& is_found) const {
  for (std::size_t index = 0; index < classes_.size(); ++index) {
    for (const auto& [name, flow] : classes_[index].flows) {
      Word before = 0;
      for (const auto& [number, entry] : flow.entries) {
        if (is_found(place_at(index, number), before)) return;
        before += entry->certain;
      }
    }
  }
}

}  // namespace sluice::detail
