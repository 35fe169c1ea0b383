// The bytes that go to the scripts and come back, and lie in the server, written down a second
// time, apart from the library's own: the test must not share its mistakes. Threading: pure
// functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/extend/operation.hpp"

namespace sluice::test {

/// A word as eight little-endian bytes, and back; zero where the bytes end too early.
[[nodiscard]] std::string le64(Word value);
[[nodiscard]] Word read_le64(const std::string& bytes, std::size_t at);
[[nodiscard]] std::string pack_words(std::span<const Word> words);

[[nodiscard]] std::string hex(const std::string& bytes);

/// The name of the script of one step.
[[nodiscard]] std::string script_name(const Operation& row);

/// What a script reads of one step: the arguments in use, and the table.
[[nodiscard]] std::string pack_step(const Operation& row, const Arguments& args,
                                    std::span<const Word> table);

/// Kernel's view of a stored state: its words, or why there are none. Words that no rule can have
/// written stand among them where the driver leaves it to the rule to meet them.
struct Loaded {
  Word status = Verdict::allowed;
  std::vector<Word> words;
};
/// `head`: how many words the driver of a variable state looks at before the rule.
[[nodiscard]] Loaded load(const std::string& raw, bool wrong_type, StateKind kind,
                          std::size_t head);

/// The bytes of a state.
[[nodiscard]] std::string encode(StateKind kind, std::span<const Word> words);

/// The bytes of a state after a rule's effects on it.
[[nodiscard]] std::string after(const std::string& raw, StateKind kind, const Effects& effects);

/// Whether a fast path may leave the time to live as it is: the last to renew it was in the same
/// half second, by the word of the state that tells how long it is needed.
[[nodiscard]] bool may_keep_ttl(StateKind kind, const std::string& before,
                                const std::string& after);

/// True if both mean the same state: words that were never written are zeros.
[[nodiscard]] bool same_state(std::string one, std::string other, StateKind kind);

}  // namespace sluice::test
