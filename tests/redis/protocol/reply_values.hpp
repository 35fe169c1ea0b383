// Values of replies, for tests of what reads them. Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/protocol/array_reply.hpp"

namespace sluice::test {

using redis_detail::ReplyValue;

inline ReplyValue string_value(std::string_view text) {
  return {.kind = ReplyValue::Kind::string, .text = std::string(text)};
}
inline ReplyValue status_value(std::string_view text) {
  return {.kind = ReplyValue::Kind::status, .text = std::string(text)};
}
inline ReplyValue error_value(std::string_view text) {
  return {.kind = ReplyValue::Kind::error, .text = std::string(text)};
}
inline ReplyValue integer_value(std::int64_t integer) {
  return {.kind = ReplyValue::Kind::integer, .integer = integer};
}
inline ReplyValue array_value(std::vector<ReplyValue> elements) {
  return {.kind = ReplyValue::Kind::array, .elements = std::move(elements)};
}
inline ReplyValue null_value() { return {}; }

}  // namespace sluice::test
