#include "look_up.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace sluice::redis_detail {

namespace asio = boost::asio;
using boost::system::error_code;

Found resolve_by_system(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first);
  if (failure == EAI_SYSTEM) return {{}, std::generic_category().message(errno)};
  if (failure != 0) return {{}, ::gai_strerror(failure)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, &::freeaddrinfo);
  Found found;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    found.endpoints.emplace_back(each->ai_addr, each->ai_addrlen);
  }
  return found;
}

/// The state that the owner and the thread share.
struct LookUp::Shared {
  std::mutex mutex;  // guards what follows
  LookUp* owner = nullptr;
  std::optional<Found> found;
};

LookUp::LookUp(asio::io_context& io, Resolve resolve)
    : io_(io), resolve_(std::move(resolve)), arrival_(io) {}

LookUp::~LookUp() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->owner = nullptr;
}

bool LookUp::is_under_way() const noexcept {
  if (!shared_) return false;
  const std::lock_guard lock(shared_->mutex);
  return !shared_->found;
}

void LookUp::start(const std::string& host, std::uint16_t port) {
  auto shared = std::make_shared<Shared>();
  shared->owner = this;
  // The thread inherits the I/O thread's mask: it handles no signals of the program.
  std::thread([shared, resolve = resolve_, host, port] {
    Found found;
    try {
      found = resolve(host, port);
    } catch (const std::exception&) {
      found = {{}, "out of memory"};
    }
    const std::lock_guard lock(shared->mutex);
    shared->found = std::move(found);
    if (shared->owner == nullptr) return;
    try {
      // Runs on the I/O thread, which the owner outlives.
      asio::post(shared->owner->io_, [shared] {
        if (shared->owner->shared_ == shared) shared->owner->arrival_.cancel();
      });
    } catch (const std::exception&) {
      return;  // the owner finds the result when its timeout ends
    }
  }).detach();
  shared_ = std::move(shared);
}

std::optional<Found> LookUp::take() noexcept {
  if (!shared_ || is_under_way()) return std::nullopt;
  const auto shared = std::exchange(shared_, nullptr);
  return std::move(shared->found);
}

asio::awaitable<std::optional<Found>> LookUp::wait(Span patience) {
  if (is_under_way() && patience > Span{0}) {
    arrival_.expires_after(patience);
    error_code ignored;
    co_await arrival_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return take();
}

void LookUp::stop() noexcept try { arrival_.cancel(); } catch (const std::exception&) {
  return;  // the wait ends with its timeout
}

}  // namespace sluice::redis_detail
