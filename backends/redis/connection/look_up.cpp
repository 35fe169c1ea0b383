#include "backends/redis/connection/look_up.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "backends/redis/connection/journal.hpp"

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

StartLookUp look_up_on_threads(Resolve resolve) {
  if (!resolve) resolve = resolve_by_system;
  return [resolve = std::move(resolve)](const std::string& host, std::uint16_t port,
                                        std::function<void(Found)> done) {
    // The thread inherits the I/O thread's mask: it handles no signals of the program.
    std::thread([resolve, host, port, done = std::move(done)] {
      Found found;
      try {
        found = resolve(host, port);
      } catch (const std::exception&) {
        found = {{}, "out of memory"};
      }
      done(std::move(found));
    }).detach();
  };
}

/// One name, shared with its look-up and with the handler of the result.
struct Names::Name : std::enable_shared_from_this<Name> {
  std::mutex mutex;                // guards the next two
  asio::io_context* io = nullptr;  // null once the store has ended
  std::optional<Found> found;      // the result, until it is taken
  bool is_under_way = false;       // this and what follows belongs to the I/O thread
  Time since{};                    // when the last look-up began
  std::uint64_t results = 0;
  std::vector<Endpoint> known{};  // of the last successful look-up
  std::string error{};            // of the last one
  std::vector<asio::steady_timer*> waiters{};

  /// Any thread.
  void arrive(Found result) {
    const std::lock_guard lock(mutex);
    found = std::move(result);
    if (io == nullptr) return;
    try {
      asio::post(*io, [name = shared_from_this()] {
        name->take_result();
        for (asio::steady_timer* waiter : name->waiters) waiter->cancel();
      });
    } catch (const std::exception&) {
      return;  // the next question finds the result
    }
  }

  void take_result() {
    const std::lock_guard lock(mutex);
    if (!found) return;
    error = std::move(found->error);
    if (found->endpoints.empty() && error.empty()) error = "the name has no address";
    if (!found->endpoints.empty()) known = std::move(found->endpoints);
    found.reset();
    is_under_way = false;
    ++results;
  }
};

/// A coroutine that waits for the result.
class Names::Waiter {
 public:
  Waiter(std::shared_ptr<Name> name, asio::io_context& io) : name_(std::move(name)), timer_(io) {
    name_->waiters.push_back(&timer_);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { std::erase(name_->waiters, &timer_); }

  asio::awaitable<void> wait(Span most) {
    timer_.expires_after(most);
    error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

 private:
  std::shared_ptr<Name> name_;
  asio::steady_timer timer_;
};

Names::Names(asio::io_context& io, StartLookUp start) : io_(io), start_(std::move(start)) {}

Names::~Names() {
  for (const auto& [_, name] : names_) {
    const std::lock_guard lock(name->mutex);
    name->io = nullptr;
  }
}

std::shared_ptr<Names::Name> Names::name_of(const std::string& host, std::uint16_t port) {
  std::pair key{host, port};
  const auto known = names_.find(key);
  if (known != names_.end()) return known->second;
  if (names_.size() >= most_names) {
    std::erase_if(names_, [](const auto& each) { return !each.second->is_under_way; });
  }
  auto name = std::make_shared<Name>();
  name->io = &io_;
  names_.emplace(std::move(key), name);
  return name;
}

asio::awaitable<Found> Names::find(std::string host, std::uint16_t port, Span most) {
  const std::shared_ptr<Name> name = name_of(host, port);
  name->take_result();
  const bool is_old = name->is_under_way;
  std::string failure;
  try {
    if (!is_old) {
      start_(host, port, [name](Found found) { name->arrive(std::move(found)); });
      name->is_under_way = true;
      name->since = clock_.now();
    }
  } catch (const std::system_error& error) {
    failure = error.code().message();
  }
  if (!name->known.empty()) {
    most = std::min(most, is_old ? name->since + patience - clock_.now() : patience);
  }
  const std::uint64_t before = name->results;
  if (failure.empty() && most > Span{0}) {
    Waiter waiter(name, io_);
    co_await waiter.wait(most);
    name->take_result();
  }
  if (failure.empty()) {
    const bool is_late = name->results == before;
    failure = !is_late ? name->error : is_old ? "no answer yet" : no_answer_within(most);
  }
  co_return Found{name->known, std::move(failure)};
}

}  // namespace sluice::redis_detail
