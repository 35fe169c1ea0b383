// hiredis calls hooks to make its reply objects: ours fill in the places that the arrays around
// them have made, and refuse what hiredis admits and RESP2 does not.
#include "backends/redis/protocol/array_reply.hpp"

#include <hiredis/hiredis.h>

#include <new>

namespace sluice::redis_detail {

using Kind = ReplyValue::Kind;

std::string text_of_error(const ReplyValue& error) {
  return error.text.empty() ? "an error without a text" : error.text;
}

struct ArrayReader::Hooks {
  static ArrayReader& reader_of(const redisReadTask* task) noexcept {
    return *static_cast<ArrayReader*>(task->privdata);
  }

  static ReplyValue& place_of(const redisReadTask* task) noexcept {
    if (task->parent == nullptr) return reader_of(task).value_;
    auto& array = *static_cast<ReplyValue*>(task->parent->obj);
    return array.elements[static_cast<std::size_t>(task->idx)];
  }

  static unsigned depth_of(const redisReadTask* task) noexcept {
    unsigned depth = 0;
    for (; task != nullptr; task = task->parent) ++depth;
    return depth;
  }

  static void* create_string(const redisReadTask* task, char* bytes, std::size_t size) noexcept {
    ReplyValue& value = place_of(task);
    switch (task->type) {
      case REDIS_REPLY_STATUS:
        value.kind = Kind::status;
        break;
      case REDIS_REPLY_ERROR:
        value.kind = Kind::error;
        break;
      case REDIS_REPLY_STRING:
        // The reader has both bytes, and does not look at them.
        if (bytes[size] != '\r' || bytes[size + 1] != '\n') return nullptr;
        value.kind = Kind::string;
        break;
      default:
        return nullptr;
    }
    try {
      value.text.assign(bytes, size);
    } catch (const std::bad_alloc&) {
      reader_of(task).is_out_of_memory_ = true;
      return nullptr;
    }
    return &value;
  }

  /// The type of `count` depends on the version of hiredis.
  template <class Count>
  static void* create_array(const redisReadTask* task, Count count) {
    ArrayReader& reader = reader_of(task);
    const auto size = static_cast<std::size_t>(count);
    if (task->type != REDIS_REPLY_ARRAY || depth_of(task) > max_depth) return nullptr;
    if (size > max_elements - reader.elements_) return nullptr;
    reader.elements_ += size;
    ReplyValue& value = place_of(task);
    value.kind = Kind::array;
    try {
      value.elements.resize(size);  // once: the hooks hold pointers to the elements
    } catch (const std::bad_alloc&) {
      reader.is_out_of_memory_ = true;
      return nullptr;
    }
    return &value;
  }

  static void* create_integer(const redisReadTask* task, long long integer) noexcept {
    ReplyValue& value = place_of(task);
    value.kind = Kind::integer;
    value.integer = integer;
    return &value;
  }

  static void* create_null(const redisReadTask* task) noexcept { return &place_of(task); }

  static void release(void*) noexcept {}

  template <class... Parts>
  static void* refuse(const redisReadTask*, Parts...) {
    return nullptr;
  }

  /// hiredis 1.0 and later reads RESP3.
  template <class Functions>
  static void refuse_resp3(Functions& functions) noexcept {
    if constexpr (requires { functions.createDouble; }) functions.createDouble = &refuse;
    if constexpr (requires { functions.createBool; }) functions.createBool = &refuse;
  }

  static redisReplyObjectFunctions make() noexcept {
    redisReplyObjectFunctions functions{};
    functions.createString = &create_string;
    functions.createArray = &create_array;
    functions.createInteger = &create_integer;
    functions.createNil = &create_null;
    functions.freeObject = &release;
    refuse_resp3(functions);
    return functions;
  }
};

void ArrayReader::Free::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }

ArrayReader::ArrayReader() { reset(); }
ArrayReader::~ArrayReader() = default;

void ArrayReader::reset() {
  static redisReplyObjectFunctions functions = Hooks::make();
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
  value_ = {};
  state_ = State::incomplete;
  bytes_ = 0;
  elements_ = 0;
  is_out_of_memory_ = false;
}

ArrayReader::State ArrayReader::feed(std::string_view bytes) {
  if (state_ != State::broken && !bytes.empty()) state_ = read(bytes);
  return state_;
}

ArrayReader::State ArrayReader::read(std::string_view bytes) {
  if (state_ == State::complete || bytes.size() > max_bytes - bytes_) return State::broken;
  bytes_ += bytes.size();
  void* complete = nullptr;
  const bool is_sound = redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK &&
                        redisReaderGetReply(reader_.get(), &complete) == REDIS_OK;
  if (is_out_of_memory_) throw std::bad_alloc();
  if (!is_sound) return State::broken;
  if (complete == nullptr) return State::incomplete;
  return reader_->pos == reader_->len ? State::complete : State::broken;
}

}  // namespace sluice::redis_detail
