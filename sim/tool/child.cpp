// See child.hpp.
#include "sim/tool/child.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>

#include "sluice/clock.hpp"

namespace sluice::tool {
namespace {

volatile std::sig_atomic_t stop_requested = 0;
constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

void sleep_for(Span span) noexcept {
  const timespec length{span.count() / 1'000'000, span.count() % 1'000'000 * 1'000};
  nanosleep(&length, nullptr);
}

[[noreturn]] void live(const std::function<int()>& run, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int signal : stop_signals) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  try {
    _exit(run());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  sigemptyset(&action.sa_mask);
  for (const int signal : stop_signals) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void pause_for(Span span) {
  if (stop_requested == 0) sleep_for(span);
  if (stop_requested != 0) throw Interrupted();
}

Child::Child(const std::function<int()>& run) {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) live(run, parent);
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Child::ended() noexcept {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ <= 0;
}

void Child::stop(Span patience) noexcept {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  const SystemClock clock;
  for (const Time end = clock.now() + patience; !ended() && clock.now() < end;) {
    sleep_for(std::chrono::milliseconds{10});
  }
}

}  // namespace sluice::tool
