// The shared rate limiter's setting: changing it, and what a client remembers of it.
#include "sluice/shared_rate.hpp"

#include <stdexcept>

#include "src/shared_rate_known.hpp"

namespace sluice {
namespace {

std::string drawn_name() {
  SystemRng rng;
  const auto name = receipt_name(RequestId::draw(rng));
  return {name.data(), name.size()};
}

}  // namespace

SharedRateLimiter::SharedRateLimiter(Store& store, std::string tag, std::string name,
                                     SharedRateOptions options)
    : store_(&store),
      tag_(std::move(tag)),
      name_(detail::valid_name(std::move(name))),
      options_(std::move(options)) {
  if (!is_valid(key())) throw std::invalid_argument("the tag must have 1 byte to 1 MiB");
  const Word keep_alive = options_.keep_alive.count();
  if (keep_alive < 1 || keep_alive > SharedRateRule::max_keep_alive) {
    throw std::invalid_argument("keep_alive must be 1 us to " +
                                std::to_string(SharedRateRule::max_keep_alive) + " us, got " +
                                std::to_string(keep_alive) + " us");
  }
  if (options_.client.empty()) options_.client = drawn_name();
  const std::size_t longest = log_name(word_limit, RateType::per_client).size();
  if (longest > Key::max_part_bytes) {
    const std::size_t names = name_.size() + client().size();
    throw std::invalid_argument("the names of a limiter and its client must have " +
                                std::to_string(Key::max_part_bytes - (longest - names)) +
                                " bytes at most together, got " + std::to_string(names));
  }
}

SharedRateLimiter::~SharedRateLimiter() = default;

Step SharedRateLimiter::set_step(SharedRateRule::Mode mode, RateType type, Word rate,
                                 Span interval) const noexcept {
  return {&shared_rate_set,
          key(),
          {rate, interval.count(), static_cast<Word>(type), static_cast<Word>(mode),
           options_.keep_alive.count()}};
}

SharedRateLimiter::Change SharedRateLimiter::change(const Step& step,
                                                    std::error_code& error) const {
  std::array<Word, 2> details{};
  decide(*store_, step, error, {}, details);
  return {details[1] != 0, details[0]};
}

SharedRateLimiter::Change SharedRateLimiter::change_as(const char* verb, const Step& step) const {
  std::error_code error;
  const Change result = change(step, error);
  if (error) throw detail::failed_call({type_name, verb}, error, step);
  return result;
}

SharedRateLimiter::Change SharedRateLimiter::try_set_rate(RateType type, Word rate, Span interval,
                                                          std::error_code& error) const {
  return change(set_step(SharedRateRule::Mode::if_absent, type, rate, interval), error);
}
SharedRateLimiter::Change SharedRateLimiter::try_set_rate(RateType type, Word rate,
                                                          Span interval) const {
  return change_as("try_set_rate", set_step(SharedRateRule::Mode::if_absent, type, rate, interval));
}
SharedRateLimiter::Change SharedRateLimiter::set_rate(RateType type, Word rate, Span interval,
                                                      std::error_code& error) const {
  return change(set_step(SharedRateRule::Mode::reset, type, rate, interval), error);
}
SharedRateLimiter::Change SharedRateLimiter::set_rate(RateType type, Word rate,
                                                      Span interval) const {
  return change_as("set_rate", set_step(SharedRateRule::Mode::reset, type, rate, interval));
}
SharedRateLimiter::Change SharedRateLimiter::update_rate(RateType type, Word rate, Span interval,
                                                         std::error_code& error) const {
  return change(set_step(SharedRateRule::Mode::update, type, rate, interval), error);
}
SharedRateLimiter::Change SharedRateLimiter::update_rate(RateType type, Word rate,
                                                         Span interval) const {
  return change_as("update_rate", set_step(SharedRateRule::Mode::update, type, rate, interval));
}

std::shared_ptr<const SharedRateLimiter::Known> SharedRateLimiter::known() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

std::string SharedRateLimiter::log_name(Word generation, RateType type) const {
  const std::string name = name_ + ":log:" + std::to_string(generation);
  return type == RateType::per_client ? name + ":" + options_.client : name;
}

Step SharedRateLimiter::read_step() const noexcept {
  return {&shared_rate_read, key(), {0, options_.keep_alive.count()}};
}

std::shared_ptr<const SharedRateLimiter::Known> SharedRateLimiter::remember(
    std::span<const Word> details, std::error_code& error) const noexcept try {
  const RateSetting setting{static_cast<RateType>(details[4]), details[2], Span{details[3]},
                            details[0]};
  std::vector<WindowLimit> windows{{setting.rate, setting.interval}};
  for (std::size_t i = 5; i < 5 + 2 * SharedRateRule::max_kept; i += 2) {
    if (details[i] != 0) windows.push_back({details[i], Span{details[i + 1]}});
  }
  std::string name = log_name(details[1], setting.type);
  SlidingWindows log(*store_, name, std::move(windows));
  const Word first_end = details[5 + 2 * SharedRateRule::max_kept];
  auto result = std::make_shared<const Known>(
      Known{setting, to_time(first_end), std::move(name), std::move(log)});
  const std::lock_guard lock(mutex_);
  known_ = result;
  return result;
} catch (const std::invalid_argument&) {  // no windows that a rule can have left
  error = Errc::corrupt_state;
  return nullptr;
} catch (const std::bad_alloc&) {
  error = make_error_code(std::errc::not_enough_memory);
  return nullptr;
}

std::shared_ptr<const SharedRateLimiter::Known> SharedRateLimiter::read(
    std::error_code& error) const {
  std::array<Word, SharedRateRule::read_details> details{};
  decide(*store_, read_step(), error, {}, details);
  return error ? nullptr : remember(details, error);
}

std::optional<RateSetting> SharedRateLimiter::rate(std::error_code& error) const {
  const auto found = read(error);
  if (error == Errc::not_configured) error.clear();
  if (!found) return std::nullopt;
  return found->setting;
}
std::optional<RateSetting> SharedRateLimiter::rate() const {
  std::error_code error;
  const auto result = rate(error);
  if (error) throw detail::failed_call({type_name, "rate"}, error, read_step());
  return result;
}

void SharedRateLimiter::refresh(std::error_code& error) const { (void)read(error); }
void SharedRateLimiter::refresh() const {
  std::error_code error;
  refresh(error);
  if (error) throw detail::failed_call({type_name, "refresh"}, error, read_step());
}

}  // namespace sluice
