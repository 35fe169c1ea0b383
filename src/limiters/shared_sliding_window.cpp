// The configuration of a shared sliding window: changing and caching it.
#include "sluice/limiters/shared_sliding_window.hpp"

#include <stdexcept>

#include "src/limiters/or_throw.hpp"
#include "src/limiters/shared_sliding_window_known.hpp"

namespace sluice {
namespace {

std::string drawn_name(Store& store) {
  SystemRng system;
  Rng* const world = store.clock().rng(DrawFor::shared_sliding_window);
  const auto name = record_name(RequestId::draw(world != nullptr ? *world : system));
  return {name.data(), name.size()};
}

SharedSlidingWindowRule::Mode mode_of(SpentPermits spent) noexcept {
  return spent == SpentPermits::kept ? SharedSlidingWindowRule::Mode::update
                                     : SharedSlidingWindowRule::Mode::reset;
}

}  // namespace

SharedSlidingWindow::SharedSlidingWindow(const StoreHandle& store, detail::TextArg tag,
                                         detail::TextArg name, SharedSlidingWindowOptions options)
    : Waitable(store.address()),
      store_(store),
      tag_(tag.view()),
      name_(detail::valid_name(name)),
      options_(std::move(options)) {
  if (!is_valid(key())) {
    throw std::invalid_argument("the tag must have 1 byte to 1 MiB, got " +
                                std::to_string(tag_.size()) + " bytes");
  }
  const Word keep_alive = options_.keep_alive.count();
  if (keep_alive < 1 || keep_alive > SharedSlidingWindowRule::max_keep_alive) {
    throw std::invalid_argument("keep_alive must be 1 us to " +
                                std::to_string(SharedSlidingWindowRule::max_keep_alive) +
                                " us, got " + std::to_string(keep_alive) + " us");
  }
  if (options_.client.empty()) options_.client = drawn_name(*store);
  const std::size_t longest = log_name(word_limit, RateType::per_client).size();
  if (longest > Key::max_part_bytes) {
    const std::size_t names = name_.size() + client().size();
    throw std::invalid_argument("the names of a limiter and its client must have " +
                                std::to_string(Key::max_part_bytes - (longest - names)) +
                                " bytes at most together, got " + std::to_string(names));
  }
}

SharedSlidingWindow::~SharedSlidingWindow() = default;

Step SharedSlidingWindow::configure_step(SharedSlidingWindowRule::Mode mode, RateType type,
                                         Word rate, Span interval) const noexcept {
  return {&shared_sliding_window_configure,
          key(),
          {rate, interval.count(), static_cast<Word>(type), static_cast<Word>(mode),
           options_.keep_alive.count()}};
}

SharedSlidingWindow::Change SharedSlidingWindow::change_as(const char* verb,
                                                           const Step& step) const {
  std::error_code error;
  const Change result = detail::run(Verbs::Configure(*store_, step, {}), error);
  if (error) throw detail::failed_call({type_name, verb}, error, step);
  return result;
}

SharedSlidingWindow::Verbs::Configure SharedSlidingWindow::Verbs::try_configure(
    const SharedSlidingWindow& limiter, RateType type, Word rate, Span interval) {
  using Mode = SharedSlidingWindowRule::Mode;
  return {*limiter.store_, limiter.configure_step(Mode::if_absent, type, rate, interval), {}};
}
SharedSlidingWindow::Verbs::Configure SharedSlidingWindow::Verbs::configure(
    const SharedSlidingWindow& limiter, RateType type, Word rate, Span interval,
    SpentPermits spent) {
  return {*limiter.store_, limiter.configure_step(mode_of(spent), type, rate, interval), {}};
}

SharedSlidingWindow::Change SharedSlidingWindow::try_configure(RateType type, Word rate,
                                                               SpanArg interval,
                                                               std::error_code& error) const {
  return detail::run(Verbs::try_configure(*this, type, rate, interval), error);
}
SharedSlidingWindow::Change SharedSlidingWindow::try_configure(RateType type, Word rate,
                                                               SpanArg interval) const {
  return change_as("try_configure",
                   configure_step(SharedSlidingWindowRule::Mode::if_absent, type, rate, interval));
}
SharedSlidingWindow::Change SharedSlidingWindow::configure(RateType type, Word rate,
                                                           SpanArg interval, SpentPermits spent,
                                                           std::error_code& error) const {
  return detail::run(Verbs::configure(*this, type, rate, interval, spent), error);
}
SharedSlidingWindow::Change SharedSlidingWindow::configure(RateType type, Word rate,
                                                           SpanArg interval,
                                                           SpentPermits spent) const {
  return change_as("configure", configure_step(mode_of(spent), type, rate, interval));
}

std::shared_ptr<const SharedSlidingWindow::Known> SharedSlidingWindow::known() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

std::string SharedSlidingWindow::log_name(Word generation, RateType type) const {
  const std::string name = name_ + ":log:" + std::to_string(generation);
  return type == RateType::per_client ? name + ":" + options_.client : name;
}

Step SharedSlidingWindow::read_step() const noexcept {
  return {&shared_sliding_window_config, key(), {0, options_.keep_alive.count()}};
}

std::shared_ptr<const SharedSlidingWindow::Known> SharedSlidingWindow::remember(
    std::span<const Word> output, std::error_code& error) const noexcept try {
  const RateSetting setting{static_cast<RateType>(output[4]), output[2], Span{output[3]},
                            output[0]};
  std::vector<WindowLimit> windows{{setting.rate, setting.interval}};
  for (std::size_t i = 5; i < 5 + 2 * SharedSlidingWindowRule::max_kept; i += 2) {
    if (output[i] != 0) windows.push_back({output[i], Span{output[i + 1]}});
  }
  std::string name = log_name(output[1], setting.type);
  SlidingWindow log(*store_, name, "", std::move(windows));
  const Word first_end = output[5 + 2 * SharedSlidingWindowRule::max_kept];
  auto result = std::make_shared<const Known>(
      Known{setting, to_time(first_end), std::move(name), std::move(log)});
  const std::lock_guard lock(mutex_);
  known_ = result;
  return result;
} catch (const std::invalid_argument&) {  // windows that no rule writes
  error = Errc::corrupt_state;
  return nullptr;
} catch (const std::bad_alloc&) {
  error = make_error_code(std::errc::not_enough_memory);
  return nullptr;
}

std::shared_ptr<const SharedSlidingWindow::Known> SharedSlidingWindow::read(
    std::error_code& error) const {
  std::array<Word, SharedSlidingWindowRule::read_output> output{};
  static_cast<void>(decide(*store_, read_step(), error, {}, output));
  return error ? nullptr : remember(output, error);
}

std::optional<RateSetting> SharedSlidingWindow::found(const Outcome& outcome,
                                                      std::error_code& error) const noexcept {
  const auto known = error ? nullptr : remember(outcome.output, error);
  if (!known) return std::nullopt;
  return known->setting;
}

std::optional<RateSetting> SharedSlidingWindow::config(std::error_code& error) const {
  return detail::run(Verbs::config(*this), error);
}
std::optional<RateSetting> SharedSlidingWindow::config() const {
  return detail::or_throw(
      {type_name, "config"}, [&] { return read_step(); },
      [&](auto& error) { return config(error); });
}

void SharedSlidingWindow::refresh(std::error_code& error) const {
  detail::run(Verbs::refresh(*this), error);
}
void SharedSlidingWindow::refresh() const {
  std::error_code error;
  refresh(error);
  if (error) throw detail::failed_call({type_name, "refresh"}, error, read_step());
}

}  // namespace sluice
