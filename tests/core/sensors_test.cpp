// The ready sensors: what they read from counters, queues and the texts of /proc.
// Threading: as each test says; most are single-threaded.
#include "sluice/limiters/sensors.hpp"
#include "sluice/virtual_clock.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view host_stat =
    "cpu  100 20 30 400 50 6 7 8 90 10\ncpu0 50 10 15 200 25 3 4 4 45 5\nintr 12345 0 9\n";
constexpr Word none = -1;

Word ppm(std::optional<Utilization> reading) { return reading ? reading->ppm() : none; }

/// Gives what it was filled with, then nothing.
class Script final : public CpuSource {
 public:
  explicit Script(std::vector<std::optional<CpuTimes>> times) : times_(std::move(times)) {}
  [[nodiscard]] std::optional<CpuTimes> read() override {
    return next_ < times_.size() ? times_[next_++] : std::nullopt;
  }

 private:
  std::vector<std::optional<CpuTimes>> times_;
  std::size_t next_ = 0;
};

}  // namespace

TEST_CASE("a utilization is a share in millionths, or invalid", "[core][sensors]") {
  CHECK(Utilization(0.0).ppm() == 0);
  CHECK(Utilization(1.0).ppm() == 1'000'000);
  CHECK(Utilization(0.7F).ppm() == 700'000);
  CHECK(Utilization(0.0000004).ppm() == 0);
  CHECK(Utilization(0.0000005).ppm() == 1);
  CHECK(Utilization(-0.0000001).ppm() == none);
  CHECK(Utilization(1.0000001).ppm() == none);
  CHECK(Utilization(std::nan("")).ppm() == none);
  CHECK(Utilization::ratio(7, 10).ppm() == 700'000);
  CHECK(Utilization::ratio(11, 10).ppm() == 1'000'000);
  CHECK(Utilization::ratio(1, 0).ppm() == 1'000'000);
  CHECK(Utilization::ratio(0, 0).ppm() == 0);
  CHECK(Utilization::ratio(-1, 10).ppm() == none);
  CHECK(Utilization::ratio(std::nan(""), 10).ppm() == none);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Utilization, int>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Utilization, bool>);
}

TEST_CASE("busy workers are counted once each, from first to last", "[core][sensors]") {
  BusyWorkers workers(4);
  CHECK(ppm(workers.read()) == 0);
  {
    BusyWorkers::Busy one = workers.begin();
    const BusyWorkers::Busy two = workers.begin();
    CHECK(ppm(workers.read()) == 500'000);
    BusyWorkers::Busy moved = std::move(one);
    CHECK(workers.busy() == 2);
    moved.end();
    moved.end();
    CHECK(workers.busy() == 1);
    moved = workers.begin();
    CHECK(workers.busy() == 2);
  }
  CHECK(workers.busy() == 0);
  std::vector<BusyWorkers::Busy> many;
  for (int i = 0; i < 5; ++i) many.push_back(workers.begin());
  CHECK(ppm(workers.read()) == 1'000'000);
  CHECK_THROWS_AS(BusyWorkers(0), std::invalid_argument);
  CHECK_THROWS_WITH(BusyWorkers(-3), sluice::test::contains_text("got -3"));
}

TEST_CASE("workers of many threads are counted exactly", "[core][sensors]") {
  BusyWorkers workers(1000);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        const auto busy = workers.begin();
        if (workers.busy() < 1) std::abort();
      }
    });
  }
  threads.clear();
  CHECK(workers.busy() == 0);
}

TEST_CASE("a queue is as busy as its head has waited", "[core][sensors]") {
  VirtualClock clock;
  std::optional<Time> head;
  QueueDelay delay(clock, 100ms, [&] { return head; });
  CHECK(ppm(delay.read()) == 0);
  head = clock.now();
  CHECK(ppm(delay.read()) == 0);
  clock.advance(80ms);
  CHECK(ppm(delay.read()) == 800'000);
  clock.advance(1s);
  CHECK(ppm(delay.read()) == 1'000'000);
  clock.advance(-10s);
  CHECK(ppm(delay.read()) == 0);
  head = Time::min();
  CHECK(ppm(delay.read()) == 1'000'000);
  head = Time::max();
  CHECK(ppm(delay.read()) == 0);
  CHECK_THROWS_AS(QueueDelay(clock, 0us, [&] { return head; }), std::invalid_argument);
  CHECK_THROWS_AS(QueueDelay(clock, 1s, nullptr), std::invalid_argument);
}

TEST_CASE("the host's processor time is read from /proc/stat", "[core][sensors]") {
  const auto times = host_cpu(host_stat);
  REQUIRE(times);
  CHECK(times->total == 621);
  CHECK(times->busy == 621 - 450);
  CHECK(host_cpu("cpu 1 2 3 4")->busy == 6);
  for (const char* wrong : {"", "cpu", "cpu  ", "cpu  1 2 3", "cpu0 1 2 3 4", "intr 1 2 3 4",
                            "cpu  1 2 x 4", "cpu  1 2 -3 4", "cpu 99999999999999999999 1 1 1"}) {
    INFO(wrong);
    CHECK_FALSE(host_cpu(wrong));
  }
}

TEST_CASE("a process' processor time is read from /proc/self/stat, whatever its name",
          "[core][sensors]") {
  const std::string fields = " S 1 2 3 4 5 6 7 8 9 10 40 2 77 88 20 0";
  for (const char* name : {"(cat)", "(a b)", "(a) R 1 2)", "()"}) {
    INFO(name);
    const auto times = process_cpu("42 " + std::string(name) + fields, host_stat);
    REQUIRE(times);
    CHECK(times->busy == 42);
    CHECK(times->total == 621);
  }
  CHECK_FALSE(process_cpu("42 cat" + fields, host_stat));
  CHECK_FALSE(process_cpu("42 (cat) S 1 2 3 4 5 6 7 8 9 10 40", host_stat));
  CHECK_FALSE(process_cpu("42 (cat)", host_stat));
  CHECK_FALSE(process_cpu("42 (cat)" + fields, "nothing"));
}

TEST_CASE("a processor's utilization is what was used between two readings", "[core][sensors]") {
  CpuSensor sensor(std::make_unique<Script>(std::vector<std::optional<CpuTimes>>{
      CpuTimes{100, 1000}, CpuTimes{175, 1100}, CpuTimes{175, 1200}, CpuTimes{175, 1200},
      CpuTimes{300, 1250}, std::nullopt, CpuTimes{310, 1300}, CpuTimes{0, 10}, CpuTimes{5, 20}}));
  CHECK(ppm(sensor.read()) == none);  // nothing to compare with
  CHECK(ppm(sensor.read()) == 750'000);
  CHECK(ppm(sensor.read()) == 0);
  CHECK(ppm(sensor.read()) == none);       // no time has passed
  CHECK(ppm(sensor.read()) == 1'000'000);  // more than there was, by rounding of ticks
  CHECK(ppm(sensor.read()) == none);       // could not be read
  CHECK(ppm(sensor.read()) == 200'000);
  CHECK(ppm(sensor.read()) == none);  // the counters began anew
  CHECK(ppm(sensor.read()) == 500'000);
  CHECK(ppm(sensor.read()) == none);
  CHECK_THROWS_AS(CpuSensor(nullptr), std::invalid_argument);
}

TEST_CASE("processor time is read from the files of a folder", "[core][sensors]") {
  const auto folder =
      std::filesystem::temp_directory_path() /
      ("sluice-proc-" + std::to_string(std::hash<std::thread::id>{}(std::this_thread::get_id()) ^
                                       reinterpret_cast<std::uintptr_t>(&host_stat)));
  std::filesystem::create_directories(folder / "self");
  const auto source = proc_cpu_source(CpuOf::host, folder.string());
  CHECK_FALSE(source->read());
  std::ofstream(folder / "stat") << host_stat;
  CHECK(source->read()->busy == 171);
  const auto process = proc_cpu_source(CpuOf::process, folder.string());
  CHECK_FALSE(process->read());
  std::ofstream(folder / "self" / "stat") << "1 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 0\n";
  CHECK(process->read()->busy == 23);
  std::filesystem::remove_all(folder);
#ifdef __linux__
  for (const CpuOf of : {CpuOf::host, CpuOf::process}) {  // this machine's own
    const auto times = proc_cpu_source(of)->read();
    REQUIRE(times);
    CHECK(times->total > 0);
    CHECK(times->busy <= times->total);
  }
#endif
}
