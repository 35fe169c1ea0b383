// Runs a few short threads in every order that takes at most so many preemptions: a depth-first
// search over the places where another thread may come in between. A switch is free where a thread
// ends or waits. Threading: all of it is one thread; the explored ones are fibers.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sluice::test {

class Explorer {
 public:
  explicit Explorer(std::size_t preemptions) : preemptions_(preemptions) {}

  /// Runs the bodies in the next order. False if every order was gone.
  /// After it, stuck() tells if they waited for each other in a circle, or did not end.
  bool run(const std::vector<std::function<void()>>& bodies);
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }
  /// The order of the last run: which thread went on at each switch, and after how many steps.
  [[nodiscard]] std::string order() const;

  // What the atomics call.
  void interleave() noexcept;
  void wait() noexcept;
  void changed() noexcept;
  [[nodiscard]] static Explorer* current() noexcept { return current_; }

 private:
  struct Fiber {
    ucontext_t context{};
    std::vector<char> stack = std::vector<char>(std::size_t{256} << 10);
    const std::function<void()>* body = nullptr;
    bool ended = false;
    bool waits = false;
    bool news = false;  // another thread has changed something since it last waited
  };
  struct Choice {
    std::size_t taken = 0;
    std::size_t options = 0;
  };

  static void enter() noexcept;
  void go_on(std::size_t thread) noexcept;
  void next() noexcept;
  [[nodiscard]] std::size_t choose(std::size_t options) noexcept;

  static inline Explorer* current_ = nullptr;

  std::size_t preemptions_;
  std::vector<Fiber> fibers_;
  ucontext_t main_{};
  std::size_t running_ = 0;
  std::size_t spent_ = 0;  // preemptions of this run
  std::size_t steps_ = 0;
  bool stuck_ = false;
  bool first_ = true;
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>>
      switches_;  // after so many steps, to this thread
};

}  // namespace sluice::test
