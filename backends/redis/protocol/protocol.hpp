// The bytes of one call: encoding of its request, decoding of its reply. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/redis/scripts/scripts.hpp"
#include "sluice/error.hpp"
#include "sluice/plan.hpp"

namespace sluice::redis_detail {

/// The format of keys.
struct KeyStyle {
  std::string prefix;
  HashKey secret{};
};

/// The part of a request after the script: the number of keys, keys and arguments. It is the same
/// for EVALSHA, EVAL and FCALL.
struct Request {
  const Script* script = nullptr;
  std::size_t words = 0;  // of the command, including the script
  std::string tail;
};

/// One of several plans of which a server admits one: they have one id, and its record under one
/// tag. The number tells them apart. With one script for all, a server that does not have it
/// executes none of them, and so none before another.
struct Alternative {
  const Script* script = nullptr;
  std::string_view tag{};
  Word number = 0;
};

/// Encodes `steps` into `request`, whose memory is reused. REQUIRES: has_scripts(steps), and an id
/// if it is an alternative.
void encode(Request& request, std::span<const Step> steps, std::uint64_t nonce,
            const KeyStyle& style, const std::optional<RequestId>& id = {},
            const std::optional<Alternative>& alternative = {});

/// Appends the request as EVALSHA, as EVAL with the text of the script, or as FCALL of its
/// function.
void append_evalsha(std::string& out, const Request& request);
void append_eval(std::string& out, const Request& request);
void append_fcall(std::string& out, const Request& request);

/// Appends a command given in words, through hiredis' formatter.
void append_command(std::string& out, std::initializer_list<std::string_view> words);

/// A decoded reply.
struct Reply {
  Time at{};
  std::array<Verdict, Plan::max_steps> verdicts;
  std::array<Word, Plan::max_steps * max_output> output;
  std::size_t output_count = 0;
};

/// False if the bytes are not a reply to `steps` steps with this nonce and number of output words,
/// or contain values that no rule returns.
[[nodiscard]] bool decode(Reply& reply, std::string_view bytes, std::uint64_t nonce,
                          std::size_t steps, std::size_t output = 0) noexcept;

/// The error code of an error reply, by its first word. Failure::unknown if the error has ended a
/// script, which may have written before.
[[nodiscard]] Errc error_of(std::string_view message) noexcept;

}  // namespace sluice::redis_detail
