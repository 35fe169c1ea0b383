// The stop tokens that Sluice has for standard libraries without them do as those of the standard.
#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>

#include "sluice/detail/own_stop_token.hpp"
#include "tests/catch.hpp"

namespace {

struct Standard {
  using Source = std::stop_source;
  using Token = std::stop_token;
  template <class F>
  using Callback = std::stop_callback<F>;
};
struct Own {
  using Source = sluice::detail::OwnStopSource;
  using Token = sluice::detail::OwnStopToken;
  template <class F>
  using Callback = sluice::detail::OwnStopCallback<F>;
};

}  // namespace

TEMPLATE_TEST_CASE("a token without a source never stops, and one behind the request at once",
                   "[core][stop]", Standard, Own) {
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  using Callback = typename TestType::template Callback<decltype(count)>;
  const typename TestType::Token token;
  CHECK_FALSE(token.stop_possible());
  CHECK_FALSE(token.stop_requested());
  { const Callback callback(token, count); }
  CHECK(calls == 0);
  typename TestType::Source source;
  source.request_stop();
  const Callback callback(source.get_token(), count);
  CHECK(calls == 1);
}

TEMPLATE_TEST_CASE("the first stop request calls every callback that has not ended, once",
                   "[core][stop]", Standard, Own) {
  typename TestType::Source source;
  const auto token = source.get_token();
  CHECK(token.stop_possible());
  int calls = 0;
  const auto count = [&calls] { ++calls; };
  using Callback = typename TestType::template Callback<decltype(count)>;
  std::optional<Callback> ended[3];
  for (auto& each : ended) each.emplace(token, count);
  const Callback stays(token, count);
  std::optional<Callback> newest(std::in_place, token, count);
  ended[1].reset();  // in the middle, at the end and at the front of the list
  ended[0].reset();
  newest.reset();
  CHECK_FALSE(token.stop_requested());
  CHECK(source.request_stop());
  CHECK_FALSE(source.request_stop());
  CHECK(token.stop_requested());
  CHECK(source.stop_requested());
  CHECK(calls == 2);
}

TEMPLATE_TEST_CASE("a callback may end itself, the next one and the source", "[core][stop]",
                   Standard, Own) {
  struct Ends;
  using Callback = typename TestType::template Callback<Ends>;
  struct Ends {
    std::optional<Callback>* mine;
    std::optional<Callback>* other;
    std::optional<typename TestType::Source>* source;
    int* calls;
    void operator()() const {
      auto* const others = other;
      auto* const sources = source;
      ++*calls;
      mine->reset();
      others->reset();
      sources->reset();
    }
  };
  std::optional<typename TestType::Source> source(std::in_place);
  const auto token = source->get_token();
  std::optional<Callback> first, second;
  int calls = 0;
  first.emplace(token, Ends{&first, &second, &source, &calls});
  second.emplace(token, Ends{&second, &first, &source, &calls});
  auto requests = *source;
  requests.request_stop();
  CHECK(calls == 1);
  CHECK(token.stop_requested());
}

TEMPLATE_TEST_CASE("the end of a callback waits until it has run on another thread", "[core][stop]",
                   Standard, Own) {
  for (int round = 0; round < 100; ++round) {
    typename TestType::Source source;
    std::atomic<bool> runs{false};
    std::atomic<bool> has_run{false};
    const auto slow = [&] {
      runs = true;
      std::this_thread::yield();
      has_run = true;
    };
    using Callback = typename TestType::template Callback<decltype(slow)>;
    std::optional<Callback> callback(std::in_place, source.get_token(), slow);
    std::thread requests([&source] { source.request_stop(); });
    while (!runs) std::this_thread::yield();
    callback.reset();
    CHECK(has_run);
    requests.join();
  }
}
