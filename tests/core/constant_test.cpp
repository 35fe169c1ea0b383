// The kernel of the constant rule, and the steps in the place of those of other rules. Threading:
// single-threaded.
#include "sluice/rules/constant.hpp"

#include "sluice/detail/limit_of.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "tests/core/kernel.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

Ask acquire(Word limit, Word cost, Word least, Word wait = 0) {
  return {&constant_acquire, {limit, cost, least, wait}};
}
Ask peek(Word limit, Word cost, Word least) { return {&constant_peek, {limit, cost, least}}; }

constexpr Verdict never{Verdict::refused, 0, word_limit, 0};
Verdict left(Word limit) { return {Verdict::allowed, limit, 0, 0}; }

Arguments args_of(const Operation& row, const Arguments& args) {
  const Step step = detail::constant_step({&row, Key{"k", "n"}, args});
  const bool grants = row.grants != Operation::Grants::nothing;
  CHECK(step.operation == (grants ? &constant_acquire : &constant_peek));
  return step.args;
}

}  // namespace

TEST_CASE("a limit of 0 refuses all but a cost of 0, and an unlimited one nothing",
          "[core][constant]") {
  check_moments({{0s, acquire(0, 0, 0), left(0)},
                 {0s, acquire(0, 1, 1), never},
                 {0s, acquire(0, 5, 0), left(0)},
                 {0s, acquire(0, 1, 1, word_limit), never},
                 {0s, peek(0, 0, 0), left(0)},
                 {0s, peek(0, 1, 1), never},
                 {0s, acquire(unlimited, 0, 0), left(unlimited)},
                 {0s, acquire(unlimited, 1, 1), left(unlimited)},
                 {0s, acquire(unlimited, word_limit, word_limit), left(unlimited)},
                 {0s, peek(unlimited, word_limit, 0), left(unlimited)}});
}

TEST_CASE("a constant tells what is granted, and of a lease that it never expires",
          "[core][constant]") {
  check_moments({{0s, acquire(unlimited, 7, 3), left(unlimited), {7, 0, 0, word_limit}},
                 {0s, acquire(0, 7, 0), left(0), {0, 0, 0, word_limit}},
                 {0s, acquire(0, 7, 1), never, {0, 0, 0, 0}}});
}

TEST_CASE("a constant step asks what the step in its place asks", "[core][constant]") {
  CHECK(args_of(token_bucket_acquire, {0, 1, 1, 0, 5}) == Arguments{0, 5, 5});
  CHECK(args_of(token_bucket_peek, {0, 1, 1, 0, 5}) == Arguments{0, 5, 5});
  CHECK(args_of(token_bucket_reserve, {unlimited, 1, 1, 1, 0, 0, 9, 5}) ==
        Arguments{unlimited, 5, 5, 9});
  CHECK(args_of(token_bucket_reserve_some, {0, 1, 1, 1, 0, 0, 2, 5}) == Arguments{0, 5, 2});
  // What changes nothing: its amount or span is still checked.
  CHECK(args_of(token_bucket_adjust, {0, 1, 1, 1, 0, 0, 1, -5}) == Arguments{0, -5});
  CHECK(args_of(token_bucket_refund, {0, 1, 1, 1, 5, 3}) == Arguments{0, 3});
  CHECK(args_of(fixed_window_adjust, {0, 0, 0, 0, 0, 0, 0, -5}) == Arguments{0, 5});
  CHECK(args_of(fixed_window_adjust, {0, 0, 0, 0, 0, 0, 0, -word_limit - 1}) == Arguments{0, -1});
  CHECK(args_of(fixed_window_block, {0, 0, 0, 0, 0, 0, 0, -5}) == Arguments{0, 0, 0, -5});
}

TEST_CASE("a constant step has a key under which nothing is stored", "[core][constant]") {
  const Arguments args{0, 1, 1, 0, 5};
  CHECK(detail::constant_step({&token_bucket_acquire, Key{"k", "n"}, args}).key.unit() == "never");
  const Key with_unit = Key{"k", "n"}.with_unit("1s");
  CHECK(detail::constant_step({&token_bucket_acquire, with_unit, args}).key.unit() == "never");
}
