// Bugs to plant in the shared rate's setting. Threading: constants.
#pragma once

#include "tests/twin/mutants.hpp"

namespace sluice::test::shared_rate {

inline constexpr std::string_view set = "shared_rate_set.lua";
inline constexpr std::string_view expect = "shared_rate_expect.lua";
inline constexpr std::string_view read = "shared_rate_read.lua";
inline constexpr std::string_view kernel = "src/algorithms/shared_rate.cpp";

inline constexpr Mutant mutants[] = {
    {"a second setting wins", set, "if version == 0 or mode ~= 0 then", "if true then"},
    {"the version follows the clock back", set, "if new_version < now then new_version = now end",
     "new_version = now"},
    {"the version stands", set, "new_version = version + 1 end", "new_version = version end"},
    {"an update starts a new log", set, "mode ~= 2 or", "true or"},
    {"another type keeps the log", set, " or per_client ~= new_per_client then", " then"},
    {"a setting is kept for ever", set, "now >= touched + kept", "false"},
    {"a rate of none accepted", set, "new_rate < 1 or", "new_rate < 0 or"},
    {"another version is accepted", expect, "if version ~= expected then return -40, 0, 0, 0 end",
     ""},
    {"more permits than the rate", expect, "if permits > rate then return -1, 0, 0, 0 end", ""},
    {"a use is never noted", expect, "if now < touched or", "if false and"},
    {"words that no setting leaves accepted", expect, "per_client > 1 or", ""},
    {"a generation from the future accepted", read, "generation > version or", ""},
    {"a setting is kept too long", read, "now >= touched + kept", "now >= touched + 2 * kept"},
    {"the version follows the clock back", kernel,
     "std::max({Word{1}, now, s.version < word_limit ? s.version + 1 : 1})",
     "std::max(Word{1}, now)"},
    {"a fresh start keeps the log", kernel, "mode == static_cast<Word>(Mode::update) &&", ""},
    {"another type keeps the log", kernel, " && s.per_client == per_client;", ";"},
    {"a setting is kept too long", kernel, "now >= s.touched + s.keep_alive",
     "now >= s.touched + 2 * s.keep_alive"},
    {"the clock set back is not noted", kernel, "if (now < s.touched ||", "if ("},
    {"answers the old rate", kernel, "is_new ? rate : s.rate, 0, 0", "s.rate, 0, 0"},
};

}  // namespace sluice::test::shared_rate
