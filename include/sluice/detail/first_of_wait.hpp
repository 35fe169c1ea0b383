// The wait of a call for the first of several alternatives. For those who write ways of waiting.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/calls/grants.hpp"
#include "sluice/detail/caller.hpp"
#include "sluice/detail/claimed_limit.hpp"
#include "sluice/detail/waiter.hpp"

namespace sluice::detail {

/// One call that waits for the first of several alternatives, each of which is a Waiter in the
/// queues of its limits. They ask the store one after the other, or together in one request that
/// grants at most one of them, so that nothing is granted in vain. The same members as those of a
/// Waiter, with the same contracts.
class FirstOfWait : public std::enable_shared_from_this<FirstOfWait> {
 public:
  using Limits = Alternatives;

  FirstOfWait(Alternatives alternatives, const Deadline& deadline, const Caller& caller,
              const std::optional<Arrival>& arrival = {});
  virtual ~FirstOfWait();
  FirstOfWait(const FirstOfWait&) = delete;
  FirstOfWait& operator=(const FirstOfWait&) = delete;

  void start() noexcept;
  void on_time() noexcept;
  void cancel() noexcept;
  [[nodiscard]] Time timer() const;
  [[nodiscard]] bool is_under_way() const;
  [[nodiscard]] std::system_error failed(const CallName& call, const std::error_code& error) const;

 protected:
  virtual void timer_changed() noexcept = 0;
  virtual void finished(std::error_code error) noexcept = 0;

  template <class Grant>
  [[nodiscard]] Grant take() {
    static_assert(std::is_same_v<Grant, Grants>);
    return std::move(grants_);
  }
  [[nodiscard]] std::shared_ptr<const std::string> reason_for(
      const std::error_code& /*error*/) const noexcept {
    return reason_;
  }
  [[nodiscard]] const Decision& refusal() const noexcept { return failure_; }
  [[nodiscard]] Clock& clock() const noexcept;

 private:
  class Alternative;
  struct Question;

  // Called by the alternatives.
  void ask(Alternative& asks, const Plan& plan, Completion done) noexcept;
  void ended(std::size_t index, std::error_code error) noexcept;

  [[nodiscard]] static Time timer_of(const Alternative& alternative, bool under_way);
  void send() noexcept;
  [[nodiscard]] const StoreRef& store() const noexcept;
  [[nodiscard]] bool send_some() noexcept;
  void keep_failure(std::size_t index, std::error_code error,
                    std::shared_ptr<const std::string> reason) noexcept;
  void keep_answer(std::size_t index, Grants answer) noexcept;
  static void answered(void* question, const Outcome& outcome) noexcept;
  void release() noexcept;

  // Not changed after the constructor:
  std::vector<std::shared_ptr<Alternative>> alternatives_;
  std::vector<std::size_t> order_;
  Arrival arrival_;

  /// One request, of the thread that sends: a store may look at it until it returns.
  struct Request {
    void reserve(std::size_t count);
    void clear() noexcept;
    std::vector<std::vector<Step>> steps{};
    std::vector<Plan> plans{};
    std::vector<Completion> done{};
  };
  Request request_;

  mutable std::mutex mutex_;  // guards what follows; no other one is taken under it
  bool is_sending_ = false;
  bool send_again_ = false;
  std::size_t at_store_ = 0;  // questions
  std::size_t pending_ = 1;   // alternatives that have not ended, and start()
  bool is_granted_ = false;
  bool is_refused_ = false;
  std::error_code error_;   // of the first alternative that failed
  std::size_t failed_ = 0;  // ... which is this one
  std::shared_ptr<const std::string> reason_;
  Decision failure_;  // ... and what the store has said of it
  Grants grants_;     // or the refusal with the shortest wait
};

}  // namespace sluice::detail
