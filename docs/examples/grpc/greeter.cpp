// gRPC in both directions: a service whose calls are limited by key, and a client that waits for
// its turn and obeys refusals. Interceptors of a C++ server cannot refuse a call, so the service is
// wrapped; those of a client can.
#include <sluice/sluice.hpp>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "greeter.grpc.pb.h"

using namespace std::chrono_literals;

/// The metadata by which a server says when to come back; gRPC's own retries read it as well.
constexpr const char* pushback = "grpc-retry-pushback-ms";

/// The service itself knows nothing of limits.
class Greeter final : public greeter::Greeter::CallbackService {
  grpc::ServerUnaryReactor* Greet(grpc::CallbackServerContext* context,
                                  const greeter::Request* request, greeter::Reply* reply) override {
    reply->set_text("hello " + request->name());
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

/// Passes a call on to `inner` if the limit of its key admits it. For a store over a network, take
/// the callback form of try_acquire(), and pass the call on there.
class LimitedGreeter final : public greeter::Greeter::CallbackService {
 public:
  LimitedGreeter(greeter::Greeter::CallbackService& inner, sluice::TokenBucket limit)
      : inner_(inner), limit_(std::move(limit)) {}

 private:
  grpc::ServerUnaryReactor* Greet(grpc::CallbackServerContext* context,
                                  const greeter::Request* request, greeter::Reply* reply) override {
    const auto key = context->client_metadata().find("x-api-key");
    const bool has_key = key != context->client_metadata().end();
    std::error_code error;
    const sluice::Decision decision = limit_.try_acquire(
        has_key ? std::string(key->second.data(), key->second.size()) : "anonymous", error);
    if (!error && decision) return inner_.Greet(context, request, reply);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    if (error) {
      reactor->Finish(
          {grpc::StatusCode::UNAVAILABLE, "the limit cannot be checked: " + error.message()});
    } else {
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(decision.retry_after);
      context->AddTrailingMetadata(pushback, std::to_string(wait.count()));
      reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many requests"});
    }
    return reactor;
  }

  greeter::Greeter::CallbackService& inner_;
  sluice::TokenBucket limit_;
};

/// What the calls of a client stand under.
struct ClientLimits {
  sluice::TokenBucket rate;
  sluice::Gates gates;
  sluice::Scope scope;
};

/// Waits before a call is sent, on the thread that makes it; and closes the gate if it is refused.
class LimitInterceptor final : public grpc::experimental::Interceptor {
 public:
  explicit LimitInterceptor(const ClientLimits& limits) : limits_(limits) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* call) override {
    using Hook = grpc::experimental::InterceptionHookPoints;
    if (call->QueryInterceptionHookPoint(Hook::PRE_SEND_INITIAL_METADATA)) {
      std::error_code error;
      const auto granted = sluice::acquire(
          {{limits_.rate, "greeter"}, {limits_.gates, limits_.scope}}, 1min, {}, error);
      if (error || !granted) return call->Hijack();  // it is not sent, and ends as below
    }
    if (call->QueryInterceptionHookPoint(Hook::PRE_RECV_STATUS)) {  // of such a call alone
      *call->GetRecvStatus() = {grpc::StatusCode::RESOURCE_EXHAUSTED,
                                "not granted within a minute"};
    }
    if (call->QueryInterceptionHookPoint(Hook::POST_RECV_STATUS)) {
      const auto* const metadata = call->GetRecvTrailingMetadata();
      const auto told = metadata->find(pushback);
      if (told != metadata->end()) {
        const std::string text(told->second.data(), told->second.size());
        std::error_code error;
        limits_.gates.close(limits_.scope, std::chrono::milliseconds{std::atoll(text.c_str())},
                            error);
      }
    }
    call->Proceed();
  }

 private:
  const ClientLimits& limits_;
};

class LimitInterceptorFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit LimitInterceptorFactory(const ClientLimits& limits) : limits_(limits) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* /*call*/) override {
    return new LimitInterceptor(limits_);  // gRPC owns it
  }

 private:
  const ClientLimits& limits_;
};

int main() {
  using namespace sluice;
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);  // time passes while this thread waits
  const auto store = make_virtual_store(clock);

  Greeter greeter;
  LimitedGreeter service(greeter, TokenBucket(*store, "server", Quota::per_minute(2).burst(2)));
  const auto server = grpc::ServerBuilder().RegisterService(&service).BuildAndStart();

  Gates gates(*store, "greeter", {"account"}, {.ramp = 0s, .spacing = 0s});
  const Scope scope = gates.scope("account", "example");
  const ClientLimits limits{TokenBucket(*store, "client", Quota::per_second(10)), gates, scope};
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<LimitInterceptorFactory>(limits));
  const auto stub = ::greeter::Greeter::NewStub(
      server->experimental().InProcessChannelWithInterceptors({}, std::move(interceptors)));

  const Time start = clock.now();
  for (int i = 1; i <= 5; ++i) {
    grpc::ClientContext context;
    context.AddMetadata("x-api-key", "alice");
    ::greeter::Request request;
    request.set_name("alice");
    ::greeter::Reply reply;
    const grpc::Status status = stub->Greet(&context, request, &reply);
    std::cout << "call " << i << " at " << (clock.now() - start) / 1s
              << " s: " << (status.ok() ? reply.text() : status.error_message()) << '\n';
  }
  server->Shutdown();
}
