// Keys of random bytes and configurations, and what is asked about them.
#include "src/testing/subjects.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::testing::detail {
namespace {

/// Bytes that are special to parsers, formatters and terminals.
std::string hostile_bytes(Context& context) {
  static constexpr std::array<std::string_view, 12> pieces{
      "{", "}", "}:", "\r\n", "*1\r\n$4\r\nPING\r\n", "%00", "%", "#", "'\"", "\xff\xfe", ":", "a"};
  std::string out;
  const std::size_t count = 1 + context.rng().below(6);
  for (std::size_t i = 0; i < count; ++i) {
    if (context.one_in(3)) {
      out += static_cast<char>(context.rng().below(256));
    } else {
      out += pieces[context.rng().below(pieces.size())];
    }
  }
  if (context.one_in(10)) out.append(100 + context.rng().below(200), 'x');
  return out;
}

}  // namespace

Subjects make_subjects(Context& context, std::size_t count, const std::string& tag) {
  Subjects subjects;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& generator = generators()[context.rng().below(generators().size())];
    const std::string own_tag = tag.empty() ? context.fresh_tag() + hostile_bytes(context) : tag;
    // The number keeps the names of one tag apart.
    subjects.emplace_back(own_tag, std::to_string(i) + hostile_bytes(context), generator,
                          generator.any(context.rng()));
  }
  return subjects;
}

void bind(Store& store, Subject& subject) {
  subject.bound = true;
  store.bind(subject.key(), subject.binding);
}

Configuration plain_configuration(Context& context, const Generator& generator, Word limit) {
  return generator.spender != nullptr ? generator.spender->frozen(limit)
                                      : generator.any(context.rng());
}

Step plain_step(Context& context, Subject& subject) {
  if (subject.generator->spender != nullptr) return subject.acquire(1);
  for (;;) {
    const Step step = subject.draw(context.rng());
    if (step.operation->writes) return step;
  }
}

void for_each_kind(const std::function<void(const Generator&)>& claim) {
  for (const Generator& generator : generators()) claim(generator);
}

void for_each_spender(const std::function<void(const Generator&, const Spender&)>& claim) {
  for (const Generator& generator : generators()) {
    if (generator.spender != nullptr) claim(generator, *generator.spender);
  }
}

void exhaust(Context& context, Subject& subject, Word limit) {
  const std::string of = std::string(subject.generator->spender->acquire->name) + ": ";
  for (Word left = limit; left-- > 0;) {
    const Decision d = step_once(context.store(), subject, subject.acquire(1));
    require(d.allowed && d.remaining == left, of + "request " + std::to_string(limit - left) +
                                                  " of " + std::to_string(limit) + ": " +
                                                  describe(d));
  }
  const Decision d = step_once(context.store(), subject, subject.acquire(1));
  require(!d.allowed && d.retry_after > Span{0}, of + "beyond the limit: " + describe(d));
}

void require_untouched(Context& context, Subject& subject, Word limit) {
  if (subject.generator->spender != nullptr) return exhaust(context, subject, limit);
  for (int i = 0; i < 8; ++i) step_once(context.store(), subject, subject.draw(context.rng()));
}

Decision draw_refusal(Context& context, Subject& subject, Step& step) {
  for (int i = 0; i < 64; ++i) {
    step = subject.draw(context.rng());
    const Answered answered = answer_once(context.store(), subject, step);
    const Decision& d = answered.decision;
    if (!answered.error && !d.allowed && d.retry_after > Span{0}) return d;
  }
  return {.allowed = true};
}

}  // namespace sluice::testing::detail
