// The shared rate limiter: what a client remembers of the setting, and its calls.
#include "sluice/shared_rate.hpp"

#include <array>
#include <stdexcept>

#include "sluice/sliding_windows.hpp"

namespace sluice {
namespace {

void throw_if(const std::error_code& error, const char* call) {
  if (error) throw std::system_error(error, call);
}

std::string drawn_name() {
  SystemRng rng;
  const auto name = receipt_name(RequestId::draw(rng));
  return {name.data(), name.size()};
}

/// How often a request reads the setting again before it gives up: each time somebody must have
/// changed it in between.
constexpr int max_attempts = 16;

}  // namespace

/// A setting that was read, and the log that it stands for.
struct SharedRateLimiter::Known {
  RateSetting setting;
  std::string log_name;
  SlidingWindows log;
};

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
}

SharedRateLimiter::~SharedRateLimiter() = default;

SharedRateLimiter::Change SharedRateLimiter::change(SharedRateRule::Mode mode, RateType type,
                                                    Word rate, Span interval,
                                                    std::error_code& error) const {
  std::array<Word, 2> details{};
  const Step step{&shared_rate_set,
                  key(),
                  {rate, interval.count(), static_cast<Word>(type), static_cast<Word>(mode),
                   options_.keep_alive.count()}};
  decide(*store_, step, error, {}, details);
  return {details[1] != 0, details[0]};
}

SharedRateLimiter::Change SharedRateLimiter::try_set_rate(RateType type, Word rate, Span interval,
                                                          std::error_code& error) const {
  return change(SharedRateRule::Mode::if_absent, type, rate, interval, error);
}
SharedRateLimiter::Change SharedRateLimiter::set_rate(RateType type, Word rate, Span interval,
                                                      std::error_code& error) const {
  return change(SharedRateRule::Mode::reset, type, rate, interval, error);
}
SharedRateLimiter::Change SharedRateLimiter::update_rate(RateType type, Word rate, Span interval,
                                                         std::error_code& error) const {
  return change(SharedRateRule::Mode::update, type, rate, interval, error);
}

SharedRateLimiter::Change SharedRateLimiter::try_set_rate(RateType type, Word rate,
                                                          Span interval) const {
  std::error_code error;
  const Change result = try_set_rate(type, rate, interval, error);
  throw_if(error, "SharedRateLimiter::try_set_rate");
  return result;
}
SharedRateLimiter::Change SharedRateLimiter::set_rate(RateType type, Word rate,
                                                      Span interval) const {
  std::error_code error;
  const Change result = set_rate(type, rate, interval, error);
  throw_if(error, "SharedRateLimiter::set_rate");
  return result;
}
SharedRateLimiter::Change SharedRateLimiter::update_rate(RateType type, Word rate,
                                                         Span interval) const {
  std::error_code error;
  const Change result = update_rate(type, rate, interval, error);
  throw_if(error, "SharedRateLimiter::update_rate");
  return result;
}

std::shared_ptr<const SharedRateLimiter::Known> SharedRateLimiter::known() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

std::shared_ptr<const SharedRateLimiter::Known> SharedRateLimiter::read(
    std::error_code& error) const {
  std::array<Word, 5> details{};
  const Step step{&shared_rate_read, key(), {0, options_.keep_alive.count()}};
  decide(*store_, step, error, {}, details);
  if (error) return nullptr;
  const RateSetting setting{static_cast<RateType>(details[4]), details[2], Span{details[3]},
                            details[0]};
  std::string log_name = name_ + ":log:" + std::to_string(details[1]);
  if (setting.type == RateType::per_client) log_name += ":" + options_.client;
  SlidingWindows log(*store_, log_name, {{setting.rate, setting.interval}});
  auto result = std::make_shared<const Known>(Known{setting, std::move(log_name), std::move(log)});
  const std::lock_guard lock(mutex_);
  known_ = result;
  return result;
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
  throw_if(error, "SharedRateLimiter::rate");
  return result;
}

Decision SharedRateLimiter::ask(bool spends, Cost permits, std::error_code& error) const {
  auto setting = known();
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    const bool remembered = setting != nullptr;
    if (!remembered) setting = read(error);
    if (!setting) return {};
    if (remembered && permits.value() > setting->setting.rate) {
      setting = nullptr;  // perhaps it is larger by now
      continue;
    }
    const Key log{tag_, setting->log_name};
    const std::array<Step, 2> steps{
        Step{&shared_rate_expect,
             key(),
             {setting->setting.rate, setting->setting.version, permits.value(),
              options_.keep_alive.count()}},
        spends ? setting->log.take(log, permits) : setting->log.look(log, permits)};
    std::array<Decision, 2> each{};
    decide(*store_, steps, error, each);
    const bool outdated =
        error == Errc::config_changed || (error == Errc::not_configured && remembered);
    if (!outdated) {
      each[1].step = 0;
      return error ? Decision{} : each[1];
    }
    setting = nullptr;
  }
  return {};
}

Decision SharedRateLimiter::try_acquire(Cost permits, std::error_code& error) const {
  return ask(true, permits, error);
}
Decision SharedRateLimiter::try_acquire(Cost permits) const {
  std::error_code error;
  const Decision result = ask(true, permits, error);
  throw_if(error, "SharedRateLimiter::try_acquire");
  return result;
}
Decision SharedRateLimiter::peek(Cost permits, std::error_code& error) const {
  return ask(false, permits, error);
}
Decision SharedRateLimiter::peek(Cost permits) const {
  std::error_code error;
  const Decision result = ask(false, permits, error);
  throw_if(error, "SharedRateLimiter::peek");
  return result;
}
Word SharedRateLimiter::available_permits(std::error_code& error) const {
  return ask(false, 0, error).remaining;
}
Word SharedRateLimiter::available_permits() const { return peek(0).remaining; }

}  // namespace sluice
