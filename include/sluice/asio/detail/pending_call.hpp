// A pending call as an Asio operation: executor, allocator, cancellation.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <utility>

#include "sluice/detail/verb.hpp"

namespace sluice::asio::detail {

/// void(boost::system::error_code, Result), or without a Result.
template <class Result>
struct SignatureOf {
  using Type = void(boost::system::error_code, Result);
};
template <>
struct SignatureOf<sluice::detail::Done> {
  using Type = void(boost::system::error_code);
};

/// One pending call, in memory of the handler's allocator. `Request` owns the arguments;
/// `request.verb()` makes the verb, which may view them.
template <class Handler, class Request>
class PendingCall final : public sluice::detail::Driven<PendingCall<Handler, Request>> {
 public:
  using Verb = decltype(std::declval<Request&>().verb());
  using Result = typename Verb::Result;

  static void start(Request request, Handler handler) {
    Memory memory(boost::asio::get_associated_allocator(handler));
    PendingCall* const self =
        std::construct_at(memory.place, std::move(request), std::move(handler));
    memory.place = nullptr;
    self->connect();
    self->proceed();
  }

  PendingCall(Request request, Handler handler)
      : handler_(std::move(handler)),
        executor_(boost::asio::prefer(boost::asio::get_associated_executor(handler_),
                                      boost::asio::execution::outstanding_work.tracked)),
        request_(std::move(request)),
        verb_(request_.verb()) {}

 private:
  friend class sluice::detail::Driven<PendingCall>;
  using Executor = boost::asio::associated_executor_t<Handler>;
  using WorkExecutor = std::decay_t<decltype(boost::asio::prefer(
      std::declval<Executor>(), boost::asio::execution::outstanding_work.tracked))>;
  using Allocator = typename std::allocator_traits<
      boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<PendingCall>;
  using Memories = std::allocator_traits<Allocator>;

  /// Memory for one object, freed unless it is in use.
  struct Memory {
    explicit Memory(const Allocator& given)
        : allocator(given), place(Memories::allocate(allocator, 1)) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      if (place != nullptr) Memories::deallocate(allocator, place, 1);
    }
    Allocator allocator;
    PendingCall* place;
  };
  struct Free {
    void operator()(PendingCall* self) const noexcept {
      PendingCall::free(self, Allocator(boost::asio::get_associated_allocator(self->handler_)));
    }
  };
  static void free(PendingCall* self, Allocator allocator) noexcept {
    std::destroy_at(self);
    Memories::deallocate(allocator, self, 1);
  }

  [[nodiscard]] Verb& verb() noexcept { return verb_; }

  void connect() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (!slot.is_connected()) return;
    StopSource stop;
    this->cancelled_by(stop.get_token());
    slot.assign([stop](boost::asio::cancellation_type type) mutable {
      if (type != boost::asio::cancellation_type::none) stop.request_stop();
    });
  }

  /// Always posted: an initiating function never calls its handler before it returns.
  void finished() noexcept {
    std::unique_ptr<PendingCall, Free> self(this);
    if constexpr (requires { verb_.never_block(); }) verb_.never_block();
    const auto executor = executor_;
    auto allocator = boost::asio::get_associated_allocator(handler_);
    boost::asio::post(executor,
                      boost::asio::bind_allocator(allocator, [self = std::move(self)]() mutable {
                        PendingCall::complete(std::move(self));
                      }));
  }

  static void complete(std::unique_ptr<PendingCall, Free> self) {
    std::error_code error;
    auto result = self->verb_.take(error);
    sluice::detail::commit(self->verb_);
    Handler handler = std::move(self->handler_);
    boost::asio::get_associated_cancellation_slot(handler).clear();
    // The memory is freed before the handler runs and may start a new call.
    free(self.release(), Allocator(boost::asio::get_associated_allocator(handler)));
    if constexpr (std::is_same_v<Result, sluice::detail::Done>) {
      std::move(handler)(boost::system::error_code(error));
    } else {
      std::move(handler)(boost::system::error_code(error), std::move(result));
    }
  }

  Handler handler_;
  WorkExecutor executor_;
  Request request_;
  Verb verb_;
};

/// Starts the call of `request` when a completion token has made its handler.
template <class Request>
struct Initiation {
  template <class Handler>
  void operator()(Handler&& handler) {
    PendingCall<std::decay_t<Handler>, Request>::start(std::move(request),
                                                       std::forward<Handler>(handler));
  }
  Request request;
};

/// The call of `request` with any completion token.
template <class Request, class CompletionToken>
[[nodiscard]] auto initiate(Request request, CompletionToken&& token) {
  using Result = typename decltype(request.verb())::Result;
  return boost::asio::async_initiate<CompletionToken, typename SignatureOf<Result>::Type>(
      Initiation<Request>{std::move(request)}, token);
}

}  // namespace sluice::asio::detail
