// hiredis calls hooks to make its reply objects: ours fill in the one reply that the guard admits
// at a time.
#include "reply_reader.hpp"

#include <hiredis/hiredis.h>

#include <new>

namespace sluice::redis_detail {

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
  text_.reserve(ReplyGuard::max_bulk);
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
}

bool ReplyReader::feed(std::string_view bytes) {
  const std::size_t good = guard_.accept(bytes);
  return redisReaderFeed(reader_.get(), bytes.data(), good) == REDIS_OK && good == bytes.size();
}

ServerReply ReplyReader::next() {
  void* complete = nullptr;
  if (redisReaderGetReply(reader_.get(), &complete) != REDIS_OK) {
    return {ServerReply::Kind::broken};
  }
  if (complete == nullptr) return {};
  return {kind_, text_};
}

}  // namespace sluice::redis_detail
