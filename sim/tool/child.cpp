// See child.hpp.
#include "sim/tool/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include "sluice/clock.hpp"

namespace sluice::tool {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

void check_stop() {
  if (stop_requested != 0) throw Interrupted();
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  return ends;
}

void close_if_open(int& descriptor) noexcept {
  if (descriptor >= 0) close(std::exchange(descriptor, -1));
}

void sleep_10_ms() noexcept {
  const timespec span{0, 10'000'000};
  nanosleep(&span, nullptr);
}

/// Between fork and exec: only what is safe there.
[[noreturn]] void become(char* const* arguments, int input, int output, bool with_errors,
                         pid_t parent) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  std::signal(SIGPIPE, SIG_DFL);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  if (with_errors) dup2(output, STDERR_FILENO);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void pause_for(Span span) {
  check_stop();
  const timespec length{span.count() / 1'000'000, span.count() % 1'000'000 * 1'000};
  nanosleep(&length, nullptr);
  check_stop();
}

Child::Child(std::vector<std::string> arguments, const std::string& output) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  auto input = make_pipe();
  std::array<int, 2> answers{-1, -1};
  if (output.empty()) {
    answers = make_pipe();
  } else {
    answers[1] = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (answers[1] < 0) fail(output.c_str());
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(pointers.data(), input[0], answers[1], !output.empty(), parent);
  const int fork_error = errno;
  close_if_open(input[0]);
  close_if_open(answers[1]);
  input_ = input[1];
  output_ = answers[0];
  if (pid_ < 0) {
    close_if_open(input_);
    close_if_open(output_);
    errno = fork_error;
    fail("fork");
  }
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)) {}

Child::~Child() {
  close_if_open(input_);
  close_if_open(output_);
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Child::write(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(input_, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      return;  // it has ended, which reading will show
    }
    check_stop();
  }
}

std::string Child::read_line(Span timeout) {
  const SystemClock clock;
  const Time end = clock.now() + timeout;
  std::string line;
  for (;;) {
    check_stop();
    const Span left = end - clock.now();
    if (left.count() <= 0) return line;
    pollfd descriptor{output_, POLLIN, 0};
    if (poll(&descriptor, 1, static_cast<int>(left.count() / 1'000) + 1) <= 0) continue;
    char c = 0;
    const ssize_t got = ::read(output_, &c, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return line;
    if (got == 1 && c == '\n') return line;
    if (got == 1) line += c;
  }
}

bool Child::ended() {
  check_stop();
  if (pid_ <= 0) return true;
  if (waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

void Child::stop(Span patience) noexcept {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  const SystemClock clock;
  for (const Time end = clock.now() + patience; clock.now() < end; sleep_10_ms()) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return;
    }
  }
}

}  // namespace sluice::tool
