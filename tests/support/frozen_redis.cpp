// The file that the server's clock is read from, and the server that reads it.
#include "tests/support/frozen_redis.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "sluice/virtual_clock.hpp"
#include "tests/support/redis_client.hpp"

namespace sluice::test {
namespace {

std::string make_folder() {
  std::string path = (std::filesystem::temp_directory_path() / "sluice-clock-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
  return path;
}

Word* map_page(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Word)) != 0) throw std::runtime_error("cannot make " + path);
  void* const memory = ::mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  auto* const page = static_cast<Word*>(memory);
  *page = to_word(VirtualClock::default_start);
  return page;
}

}  // namespace

FrozenRedis& FrozenRedis::instance() {
  static FrozenRedis only;
  return only;
}

FrozenRedis::FrozenRedis()
    : folder_(make_folder()),
      page_(map_page(folder_ + "/now")),
      server_({}, {"LD_PRELOAD=" SLUICE_FROZEN_CLOCK, "SLUICE_FROZEN_CLOCK=" + folder_ + "/now"}) {}

FrozenRedis::~FrozenRedis() {
  server_.kill();
  ::munmap(page_, sizeof(Word));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void FrozenRedis::set_time(Time time) noexcept {
  __atomic_store_n(page_, to_word(time), __ATOMIC_RELEASE);
}

void FrozenRedis::flush() {
  if (RedisClient(server_.unix_socket())({"FLUSHALL"}).is_error()) {
    throw std::runtime_error("cannot flush the server");
  }
}

std::vector<std::string> shifted_clock(Span shift) {
  return {"LD_PRELOAD=" SLUICE_FROZEN_CLOCK, "SLUICE_CLOCK_SHIFT=" + std::to_string(shift.count())};
}

}  // namespace sluice::test
