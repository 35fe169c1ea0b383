// hiredis calls hooks to make its reply objects: ours fill in the one reply that the guard admits
// at a time.
#include "backends/redis/protocol/reply_reader.hpp"

#include <hiredis/hiredis.h>

#include <new>

namespace sluice::redis_detail {
namespace {

/// hiredis moves all bytes that it has not parsed to the front of its buffer, once for each KiB
/// that it has: with the bytes of a whole read, it would move each of them some thirty times.
constexpr std::size_t bytes_at_once = 4096;

}  // namespace

struct ReplyReader::Hooks {
  static void* create_string(const redisReadTask* task, char* bytes, std::size_t size) noexcept {
    auto& self = *static_cast<ReplyReader*>(task->privdata);
    switch (task->type) {
      case REDIS_REPLY_STATUS:
        self.kind_ = ServerReply::Kind::status;
        break;
      case REDIS_REPLY_ERROR:
        self.kind_ = ServerReply::Kind::error;
        break;
      default:
        self.kind_ = ServerReply::Kind::string;
    }
    // Copied, because the reader may move its buffer before it returns. It cannot throw: reset()
    // has made room for the longest reply.
    self.text_.assign(bytes, size);
    return &self;
  }
  static void* create_integer(const redisReadTask* task, long long) noexcept {
    auto& self = *static_cast<ReplyReader*>(task->privdata);
    self.kind_ = ServerReply::Kind::integer;
    self.text_.clear();
    return &self;
  }
  static void release(void*) noexcept {}

  static redisReplyObjectFunctions make() noexcept {
    redisReplyObjectFunctions functions{};  // the guard rejects other kinds of reply
    functions.createString = &create_string;
    functions.createInteger = &create_integer;
    functions.freeObject = &release;
    return functions;
  }
};

void ReplyReader::Free::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }

void ReplyReader::reset() {
  static redisReplyObjectFunctions functions = Hooks::make();
  guard_.reset();
  unparsed_ = {};
  text_.reserve(ReplyGuard::max_bulk);
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
}

bool ReplyReader::feed(std::string_view bytes) {
  unparsed_ = bytes.substr(0, guard_.accept(bytes));
  return unparsed_.size() == bytes.size();
}

/// False if there are no more bytes, or without memory, which breaks the reader.
bool ReplyReader::parse_more() noexcept {
  if (unparsed_.empty()) return false;
  const std::string_view part = unparsed_.substr(0, bytes_at_once);
  unparsed_.remove_prefix(part.size());
  return redisReaderFeed(reader_.get(), part.data(), part.size()) == REDIS_OK;
}

ServerReply ReplyReader::next() {
  void* complete = nullptr;
  do {
    if (redisReaderGetReply(reader_.get(), &complete) != REDIS_OK) {
      return {ServerReply::Kind::broken};
    }
  } while (complete == nullptr && parse_more());
  if (complete != nullptr) return {kind_, text_};
  return {reader_->err != 0 ? ServerReply::Kind::broken : ServerReply::Kind::none};
}

}  // namespace sluice::redis_detail
