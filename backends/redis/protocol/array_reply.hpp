// ArrayReader: one reply of any shape, for the commands that are asked apart from calls (HELLO,
// ROLE, SENTINEL, CLUSTER SLOTS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace sluice::redis_detail {

/// A reply of RESP2, or an element of one.
struct ReplyValue {
  enum class Kind : std::uint8_t { null, status, error, integer, string, array };
  Kind kind = Kind::null;
  std::string text{};                  // of a status, error or string
  std::int64_t integer = 0;            // of an integer
  std::vector<ReplyValue> elements{};  // of an array
  friend bool operator==(const ReplyValue&, const ReplyValue&) = default;
};

/// The text of an error reply, or one in its place if it is empty.
[[nodiscard]] std::string text_of_error(const ReplyValue& error);

/// Reads exactly one reply. Memory is bounded by 1 MiB, whatever lengths the server announces:
/// hiredis' buffer has twice the bytes that it holds at most, the texts of the values are as long
/// as the reply at most, and there are max_elements values. That is enough for the map of a cluster
/// of 1000 nodes, or of some 600 ranges of slots. Not thread-safe.
class ArrayReader {
 public:
  enum class State {
    incomplete,
    complete,
    broken,  // no RESP2, beyond a bound, or bytes behind the reply: it stays so
  };
  static constexpr std::size_t max_bytes = 131'072;
  static constexpr std::size_t max_elements = 8192;  // of all arrays of the reply together
  static constexpr unsigned max_depth = 8;           // of arrays in arrays
  static_assert(3 * max_bytes + max_elements * sizeof(ReplyValue) <= std::size_t{1} << 20);

  ArrayReader();
  ~ArrayReader();
  ArrayReader(const ArrayReader&) = delete;
  ArrayReader& operator=(const ArrayReader&) = delete;

  /// Forgets the reply, and expects another one. Throws std::bad_alloc.
  void reset();
  /// Adds received bytes. Throws std::bad_alloc; reset() is needed after that.
  State feed(std::string_view bytes);
  /// REQUIRES: feed() returned `complete`. Valid until reset().
  [[nodiscard]] const ReplyValue& value() const noexcept { return value_; }

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept;
  };
  struct Hooks;
  State read(std::string_view bytes);

  std::unique_ptr<redisReader, Free> reader_;
  ReplyValue value_;
  State state_ = State::incomplete;
  std::size_t bytes_ = 0;
  std::size_t elements_ = 0;
  bool is_out_of_memory_ = false;  // a hook cannot throw through hiredis
};

}  // namespace sluice::redis_detail
