// The other end of the protocol: reads requests and writes replies as a server would.
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/extend/operation.hpp"

namespace sluice::test {

using Command = std::vector<std::string>;

/// Takes the first complete command off `bytes`. Throws std::runtime_error if it is malformed.
std::optional<Command> take_command(std::string& bytes);

/// True for EVALSHA and EVAL.
bool is_call(const Command& command);
/// The nonce and the number of keys of a call.
std::uint64_t nonce_of(const Command& call);
std::size_t steps_of(const Command& call);

/// The texts between semicolons.
std::vector<std::string> split(std::string_view list);

/// The bytes of a reply in its bulk string, and with its RESP frame.
std::string payload(std::uint64_t nonce, Word at, std::initializer_list<Verdict> verdicts);
std::string bulk(std::string_view bytes);
/// The framed reply that allows every step of `call`, decided at `at`.
std::string allowing(const Command& call, Word at);

}  // namespace sluice::test
