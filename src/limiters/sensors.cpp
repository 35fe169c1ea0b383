// The measurements of the sensors, and parsing of Linux' processor counters.
#include "sluice/limiters/sensors.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sluice {
namespace {

/// Takes the next number off `text`, after any spaces.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool skip_words(std::string_view& text, std::size_t count) noexcept {
  for (; count > 0; --count) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return false;
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
  return true;
}

std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) return std::nullopt;
  return text;
}

class ProcSource final : public CpuSource {
 public:
  ProcSource(CpuOf of, std::string folder) : of_(of), folder_(std::move(folder)) {}

  [[nodiscard]] std::optional<CpuTimes> read() override {
    const auto stat = contents(folder_ + "/stat");
    if (!stat) return std::nullopt;
    if (of_ == CpuOf::host) return host_cpu(*stat);
    const auto self = contents(folder_ + "/self/stat");
    return self ? process_cpu(*self, *stat) : std::nullopt;
  }

 private:
  CpuOf of_;
  std::string folder_;
};

}  // namespace

BusyWorkers::BusyWorkers(Word workers) : workers_(workers) {
  if (workers < 1 || workers > word_limit) {
    throw std::invalid_argument("there must be 1 to 2^52 workers, got " + std::to_string(workers));
  }
}

std::optional<Utilization> BusyWorkers::read() {
  return Utilization::ratio(static_cast<double>(busy()), static_cast<double>(workers_));
}

QueueDelay::QueueDelay(const Clock& clock, Span full_delay,
                       std::function<std::optional<Time>()> oldest)
    : clock_(clock), full_delay_(full_delay), oldest_(std::move(oldest)) {
  if (full_delay_ < Span{1}) {
    throw std::invalid_argument("the full delay of a queue must be 1 us or more, got " +
                                std::to_string(full_delay_.count()) + " us");
  }
  if (!oldest_) throw std::invalid_argument("a queue delay needs a function for the oldest item");
}

std::optional<Utilization> QueueDelay::read() {
  const std::optional<Time> head = oldest_();
  if (!head) return Utilization(0.0);
  const Time since = std::clamp(*head, Time{}, to_time(word_limit));
  const Span waited = std::max(Span{0}, clock_.now() - since);
  return Utilization::ratio(static_cast<double>(waited.count()),
                            static_cast<double>(full_delay_.count()));
}

std::optional<CpuTimes> host_cpu(detail::TextArg text) noexcept {
  std::string_view stat = text;
  // "cpu  user nice system idle iowait irq softirq steal guest guest_nice": the guests' time is
  // part of user and nice already. Kernels before 2.6.11 have fewer columns.
  if (!stat.starts_with("cpu ")) return std::nullopt;
  stat.remove_prefix(4);
  std::array<std::uint64_t, 8> columns{};
  std::size_t count = 0;
  for (auto number = take_number(stat); number && count < columns.size();
       number = take_number(stat)) {
    columns[count++] = *number;
  }
  if (count < 4) return std::nullopt;
  CpuTimes times;
  for (const std::uint64_t column : columns) times.total += column;
  times.busy = times.total - columns[3] - columns[4];
  return times;
}

std::optional<CpuTimes> process_cpu(detail::TextArg self_text, detail::TextArg stat) noexcept {
  std::string_view self = self_text;
  const std::optional<CpuTimes> host = host_cpu(stat);
  // "pid (name) state ...": the name may contain anything, also spaces and parentheses.
  const std::size_t name_end = self.rfind(')');
  if (!host || name_end == std::string_view::npos) return std::nullopt;
  self.remove_prefix(name_end + 1);
  if (!skip_words(self, 11)) return std::nullopt;
  const auto user = take_number(self);
  const auto system = take_number(self);
  if (!user || !system) return std::nullopt;
  return CpuTimes{*user + *system, host->total};
}

std::unique_ptr<CpuSource> proc_cpu_source(CpuOf of, detail::TextArg folder) {
  return std::make_unique<ProcSource>(of, std::string(folder.view()));
}

CpuSensor::CpuSensor(std::unique_ptr<CpuSource> source) : source_(std::move(source)) {
  if (!source_) throw std::invalid_argument("a processor's sensor needs a source");
}

std::optional<Utilization> CpuSensor::read() {
  const std::lock_guard lock(mutex_);
  const std::optional<CpuTimes> now = source_->read();
  if (!now) return std::nullopt;
  const std::optional<CpuTimes> before = std::exchange(last_, now);
  if (!before || now->total <= before->total || now->busy < before->busy) return std::nullopt;
  return Utilization::ratio(static_cast<double>(now->busy - before->busy),
                            static_cast<double>(now->total - before->total));
}

}  // namespace sluice
